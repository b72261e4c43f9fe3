"""Environments of the user's own: on top of a shipped module, of plain Python, or made by conda.

One lies in a folder of its name below one of ``session.environments_folders``: a venv whose
``.pth`` file adds the module's packages, with what pip may not change in a file of constraints, or
what conda makes (``conda``); and a record, which is written last. So without a record it is half
made, and counts as none. It is a kernel (``kernels``), and a module of the same name for terminals
and jobs (``modulefile``).

``portal env`` (``command``) makes and removes them, for JupyterLab too (``routes``).
"""
