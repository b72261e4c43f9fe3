"""Slurm's own figures for Prometheus: nodes, GPUs, jobs, and how the scheduler is.

A service by itself, not a part of the hub: Slurm is to be seen where the hub is down, and by sites
whose Prometheus has no token of the hub's. The hub's metrics tell of sessions, these of everybody's
jobs. No user is named.
"""
