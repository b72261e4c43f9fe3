"""The process inside a session's job: it runs as the user, on a compute node.

``python -I -m dsportal.session`` (``__main__``) reads one JSON object
(`dsportal.session_schema`), makes the environment (``environment``), the folders
(``files.home``) and the socket (``callback``), and becomes a JupyterLab server
(``server``) that lets in whom the hub lets in (``upstream.hub_login``). Nothing here
knows the hub's side.
"""
