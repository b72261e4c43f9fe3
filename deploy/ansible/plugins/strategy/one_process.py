"""Ansible's linear strategy by Mitogen: a host runs all modules in one process.

Mitogen pins its processes to cores, and services that a task starts would inherit that.
"""

import ansible_mitogen.affinity
from ansible_mitogen.plugins.strategy import mitogen_linear

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()


class StrategyModule(mitogen_linear.StrategyModule):  # type: ignore[misc]
    """Ansible looks for a class of this name."""
