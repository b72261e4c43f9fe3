"""A day of many users in little time, with faults at random: what must not happen, did not.

Who comes when is drawn before (`day`), from a seed. Then three parties run side by side: the crowd
does what users do (`crowd`, with `stays` as its own record of who has which session), faults are
injected one at a time (`injection`), and a watcher asks Slurm, the kernel of this machine and the
pages, never the crowd's or the portal's word alone (`watcher`). What it finds is judged by pure
rules (`invariants`, `trend`) and told as it happens (`findings`).
"""
