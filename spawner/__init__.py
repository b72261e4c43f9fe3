"""JupyterHub sessions as Slurm jobs with GPUs.

Use it with ``c.JupyterHub.spawner_class = "spawner.gpu_spawner.GpuSlurmSpawner"``.
"""
