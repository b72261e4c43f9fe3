"""Requirements of a portal on a site's own Slurm, checked against what Slurm says of itself."""
