"""The way to Slurm: what is asked, what comes back, who asks."""
