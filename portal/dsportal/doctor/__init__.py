"""``portal doctor``: health checks of this host, and what to do about what they find.

The standard library only, and nothing else of the portal: it must run where the portal is broken,
and on compute nodes, which have no environment of the portal's own. A glossary: a *check* asks one
thing of one part, such as one mount; a *finding* is what it answers; what is *expected* is what the
deployment wrote down for this host.
"""
