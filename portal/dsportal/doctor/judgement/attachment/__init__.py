"""What a portal needs of a Slurm that the site runs itself, read from what Slurm says of itself."""
