"""A backup of the hub's and of Slurm's state as one file, and the way back."""
