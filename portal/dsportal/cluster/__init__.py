"""The hub's service that shows the cluster: nodes, GPUs, who holds them, and the queue.

``python -I -m dsportal.cluster``, started by the hub. It asks Slurm once in a while for all who
look (`watch`), and not at all while nobody does. What a viewer is shown of the answer is decided
here, not in the browser (`view`).
"""
