"""The interface to Slurm: commands, parsers, client and watchers."""
