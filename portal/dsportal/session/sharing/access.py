"""Access to a share in the file system's terms: mode, group, POSIX ACL (acl(5))."""

import errno
import grp
import os
import pwd
import struct
from dataclasses import dataclass
from typing import Any

from dsportal.session.sharing import words

PEOPLE, GROUP, LINK = "people", "group", "link"
MOST_PEOPLE = 50

_FIRST_UID = 1000
# linux/posix_acl_xattr.h: a version, then entries of tag, permissions and number.
_ACL = "system.posix_acl_access"
_ACL_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NO_NUMBER = 0xFFFFFFFF


class SharingError(Exception):
    """The notebook cannot be shared or opened; the message is for the user."""


@dataclass(frozen=True)
class Audience:
    """The users and groups that something is shared with."""

    kind: str
    """`PEOPLE`, `GROUP`, or `LINK`: everybody on the cluster who knows the link."""
    names: tuple[str, ...] = ()
    """Of the people, or of the one group."""


def audience_from(kind: object, names: object) -> Audience:
    """Read whom the page names; raises `SharingError`."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SharingError(words.NO_AUDIENCE)
    told = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if kind == LINK and not told:
        return Audience(LINK)
    if kind == GROUP and len(told) == 1:
        return Audience(GROUP, told)
    if kind == PEOPLE and 0 < len(told) <= MOST_PEOPLE:
        return Audience(PEOPLE, told)
    raise SharingError(words.NO_AUDIENCE)


def own_groups() -> list[str]:
    """Return the names of the groups that this process's user can share with."""
    user = pwd.getpwuid(os.getuid()).pw_name
    found = set()
    for number in {os.getgid(), *os.getgroups()}:
        try:
            found.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return sorted(found - {user, "root"})


class Grant:
    """The rights of an audience, looked up once and given to any number of files."""

    def __init__(self, audience: Audience) -> None:
        """Look up who is named; raises `SharingError` for somebody whom this machine has not."""
        self._kind = audience.kind
        self._users: tuple[int, ...] = ()
        self._group = -1
        if audience.kind == PEOPLE:
            self._users = tuple(sorted({_uid_of(name) for name in audience.names}))
        elif audience.kind == GROUP:
            (name,) = audience.names
            if name not in own_groups():
                raise SharingError(words.NO_GROUP.format(name=name))
            self._group = grp.getgrnam(name).gr_gid

    def give(self, file: int, *, is_folder: bool) -> None:
        """Let them read an open file, or enter an open folder; raises `SharingError`, `OSError`."""
        owner, others = (7, 5) if is_folder else (6, 4)
        if self._kind == LINK:
            os.fchmod(file, owner << 6 | others << 3 | others)
        elif self._kind == GROUP:
            os.fchown(file, -1, self._group)
            os.fchmod(file, owner << 6 | others << 3)
        else:
            try:
                os.setxattr(file, _ACL, acl(self._users, owner, others))
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise SharingError(words.NO_ACL) from error
                raise


def acl(users: tuple[int, ...], owner: int, others: int) -> bytes:
    """Return an access ACL: the owner's permissions, those of some users, nothing for the rest."""
    entries = [
        (_USER_OBJ, owner, _NO_NUMBER),
        *((_USER, others, number) for number in users),
        (_GROUP_OBJ, 0, _NO_NUMBER),
        (_MASK, others, _NO_NUMBER),
        (_OTHER, 0, _NO_NUMBER),
    ]
    packed: list[Any] = [struct.pack("<HHI", *entry) for entry in entries]
    return struct.pack("<I", _ACL_VERSION) + b"".join(packed)


def _uid_of(name: str) -> int:
    try:
        user = pwd.getpwnam(name)
    except (KeyError, ValueError) as error:
        raise SharingError(words.NO_USER.format(name=name)) from error
    if user.pw_uid < _FIRST_UID:
        raise SharingError(words.NO_USER.format(name=name))
    return user.pw_uid
