"""JupyterHub sessions as Slurm jobs with GPUs.

Use it with ``c.JupyterHub.spawner_class = "jupyterhub_gpu_slurm.gpu_spawner.GpuSlurmSpawner"``.
"""
