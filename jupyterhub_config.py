"""What `jupyterhub -f` reads: all of it comes from portal.toml.

PORTAL_SETTINGS names the file (default: /etc/data-scientist-portal/portal.toml); the site's own
conf.d/*.py beside it are run last. What a key means: docs/reference/settings.md.
"""

from dsportal.hub.configuration import configure_from_file

configure_from_file(get_config())  # noqa: F821  # JupyterHub puts get_config here
