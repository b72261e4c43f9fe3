"""Who used how many GPU hours: the hub's own record of sessions, and Slurm's accounting."""
