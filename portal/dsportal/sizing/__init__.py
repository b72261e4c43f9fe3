"""Sizing of storage for a number of GPUs: the papers' rule, with their figures or one's own."""
