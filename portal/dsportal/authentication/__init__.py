"""JupyterHub's authenticators: for a directory (ldap), and for the machine's accounts (pam)."""
