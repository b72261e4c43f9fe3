"""What a deployment has said: Ansible's recap, and the tasks that changed something."""

import re


def outcome(said: str) -> dict[str, dict[str, int]]:
    """Return the numbers of Ansible's recap for each host."""
    lines = re.findall(r"^(\w+) +: (ok=.*)$", said, re.MULTILINE)
    pairs = {host: re.findall(r"(\w+)=(\d+)", counts) for host, counts in lines}
    return {host: {key: int(number) for key, number in found} for host, found in pairs.items()}


def changed_tasks(said: str) -> list[str]:
    """Return the names of the tasks that changed something."""
    tasks = said.split("\nTASK ")[1:]
    return [task.partition("]")[0] for task in tasks if re.search("^changed:", task, re.MULTILINE)]
