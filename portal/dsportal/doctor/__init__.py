"""``portal doctor``: is what was configured on this host really so, and what to do where it is not.

The standard library only, and nothing else of the portal: it must run where the portal is broken,
and on compute nodes, which have no environment of the portal's own. A glossary: a *check* asks one
thing of one part, such as one mount; a *finding* is what it answers; what is *expected* is what the
deployment wrote down for this host.
"""
