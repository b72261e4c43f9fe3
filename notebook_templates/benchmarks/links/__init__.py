"""Links between nodes and between GPUs: TCP, all-reduces and copies."""
