"""Who may log in, and as what: the directory (ldap) or the machine's accounts (pam)."""
