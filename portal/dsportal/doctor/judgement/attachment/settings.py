"""The answer of ``scontrol show config``, as 22.05 and later print it."""

import re

_SETTING = re.compile(r"^(\w+)(?:\[\d+\])?\s*=[^\S\n]*(.*?)[^\S\n]*$", re.MULTILINE)
_NOTHING = {"", "(null)", "none", "unlimited", "n/a"}


class SlurmConfig:
    """Slurm's settings by their names, in lower case: releases write them differently."""

    def __init__(self, config: str) -> None:
        self._values = {name.lower(): value for name, value in _SETTING.findall(config)}

    def value(self, name: str) -> str:
        """Give what is set, "" for nothing."""
        value = self._values.get(name.lower(), "")
        return "" if value.lower() in _NOTHING else value

    def words(self, name: str) -> list[str]:
        """Give the parts of a list."""
        return [word.strip().lower() for word in self.value(name).split(",") if word.strip()]
