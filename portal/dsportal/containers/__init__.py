"""Programs in images: how Apptainer is called, and what an image is.

Standard library only, and no other part of the portal: sessions, jobs, templates and the command
line use it.
"""
