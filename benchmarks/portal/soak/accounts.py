"""The day's people: Unix accounts of this machine and entries of the test instance's directory."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from benchmarks.portal.harness import people
from tests.instance import FOLDER_NAME, PASSWORD, PREFIX, Instance

_GROUP = f"{PREFIX}-data-scientists"
_HOMES = Path("/var/lib", FOLDER_NAME, "home")
_SOCKET = f"/run/{FOLDER_NAME}/slapd/ldapi"


@contextmanager
def temporary(portal: Instance, count: int) -> Iterator[list[str]]:
    """Make so many people who may log in; give their names."""
    ldap = portal.settings["authentication"]["ldap"]
    entries = _Entries(ldap["user_base"], f"cn={_GROUP},{ldap['group_base']}")
    with people.members(count, _GROUP, _HOMES) as made:
        entries.remove(made.names)
        entries.add(made.names)
        try:
            yield made.names
        finally:
            entries.remove(made.names)


class _Entries:
    """People's entries, changed by the directory's own root through its socket."""

    def __init__(self, user_base: str, group: str) -> None:
        self._user_base, self._group = user_base, group

    def add(self, names: Sequence[str]) -> None:
        """Add people, as members of the group."""
        self._change("\n".join(map(self._person, names)), "-a")
        self._change(self._membership("add", names))

    def remove(self, names: Sequence[str]) -> None:
        """Remove those who are there."""
        self._change("\n".join(f"dn: {self._dn(name)}\nchangetype: delete\n" for name in names))
        for name in names:
            self._change(self._membership("delete", [name]))

    def _dn(self, name: str) -> str:
        return f"uid={name},{self._user_base}"

    def _person(self, name: str) -> str:
        return (
            f"dn: {self._dn(name)}\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name}\n"
            f"sn: {name}\nuserPassword: {PASSWORD}\n"
        )

    def _membership(self, verb: str, names: Sequence[str]) -> str:
        members = "".join(f"memberUid: {name}\n" for name in names)
        return f"dn: {self._group}\nchangetype: modify\n{verb}: memberUid\n{members}"

    def _change(self, ldif: str, *options: str) -> None:
        argv = ["/usr/bin/ldapmodify", "-c", "-Q", "-Y", "EXTERNAL", *options]
        done = subprocess.run(
            [*argv, "-H", f"ldapi://{quote(_SOCKET, safe='')}"],
            input=ldif,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        # 16 and 32: a member or an entry that was to be removed was not there.
        if done.returncode not in (0, 16, 32):
            raise RuntimeError(f"ldapmodify ended with {done.returncode}: {done.stderr}")
