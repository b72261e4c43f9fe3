"""Backup and restore of the hub's and Slurm's state, as one file."""
