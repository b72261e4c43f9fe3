"""Finished measurements as tables and figures."""
