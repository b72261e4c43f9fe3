"""Ansible's linear strategy by Mitogen: a host runs all modules in one process.

Mitogen pins its processes to cores, and services that a task starts would inherit that.

Ansible forks for each task, and a garbage collection in a child copies the pages that it shares
with its parent. Without most of them a second run takes 0.85 of the user time (three pairs).
"""

import gc

import ansible_mitogen.affinity
from ansible_mitogen.plugins.strategy import mitogen_linear

_ALLOCATIONS_UNTIL_COLLECTED = 100_000

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()
gc.freeze()
gc.set_threshold(_ALLOCATIONS_UNTIL_COLLECTED)


class StrategyModule(mitogen_linear.StrategyModule):  # type: ignore[misc]
    """Ansible looks for a class of this name."""
