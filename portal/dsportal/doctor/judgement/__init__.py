"""Evaluation of what the checks were answered: values in, findings out."""
