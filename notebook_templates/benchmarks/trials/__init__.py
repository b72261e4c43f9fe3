"""Trainings that are timed, and what is told from their steps."""
