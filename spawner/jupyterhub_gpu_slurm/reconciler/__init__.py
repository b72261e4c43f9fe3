"""The reconciler: a service of the hub that compares Slurm's jobs with the hub's servers.

``python -m jupyterhub_gpu_slurm.reconciler``, started by the hub. After each start of the hub, and
every few minutes, it looks for jobs that carry the hub's mark and belong to no server, and cancels
them; and for starts that were interrupted by the end of a hub, and has them taken up again.
"""
