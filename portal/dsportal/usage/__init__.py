"""GPU hours of users: from the hub's own record of sessions, and from Slurm's accounting."""
