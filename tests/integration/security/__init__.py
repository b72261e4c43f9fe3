"""Attacks on the portal, and what it answers."""
