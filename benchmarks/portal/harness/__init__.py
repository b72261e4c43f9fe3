"""Harness of the portal's benchmarks: a private Slurm, hubs, people, and what is seen of them."""
