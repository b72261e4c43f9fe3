"""Notebooks that a user shares with others of the cluster, read-only.

A share is a copy in a folder of its own below ``session.shares_folder``, named by 128 random bits.
The file system alone decides who may read it: the session of whoever follows the link opens it with
that user's rights. No part of the portal that has more rights than its user is involved.

*owner*: who shares; *reader*: whose session opens it.
"""
