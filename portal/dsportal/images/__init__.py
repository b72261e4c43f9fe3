"""``portal image``: images from a registry become files that Apptainer runs.

It needs the standard library only: it is one file on each compute node, run there by users.
"""
