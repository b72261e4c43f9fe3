"""JupyterHub sessions as Slurm jobs with GPUs.

Use it with ``c.JupyterHub.spawner_class = "gpu-slurm"``.
"""
