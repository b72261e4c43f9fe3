"""A systemctl for unit tests: it says the same of every unit, and keeps what it was told."""

from pathlib import Path

_PROGRAM = """#!/bin/sh
echo "$*" >> "$0.told"
case "$1" in
show) printf 'LoadState=%s\\nActiveState=%s\\n' {load} {active} ;;
is-enabled) echo {enabled} ;;
esac
"""


class Systemctl:
    """In a folder of its own, which comes first in ``path``."""

    def __init__(self, folder: Path, load: str, active: str = "active", enabled: str = "enabled"):
        self._program = folder / "bin/systemctl"
        self._program.parent.mkdir()
        self._program.write_text(_PROGRAM.format(load=load, active=active, enabled=enabled))
        self._program.chmod(0o755)
        self.path = f"{self._program.parent}:/usr/bin:/bin"

    def told(self) -> list[str]:
        """Return what it was told, and forget it; not what it was asked."""
        file = self._program.with_name("systemctl.told")
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [line for line in lines if line.split()[0] not in ("show", "is-enabled")]
