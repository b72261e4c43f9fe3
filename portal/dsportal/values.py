"""Types of values in settings, each with the rule that it keeps."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, TypeVar
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator, Field, Strict
from pydantic_core import PydanticCustomError

from jupyterhub_gpu_slurm.slurm.records import SLURM_NAME


def _rule(holds: Callable[[str], object], words: str) -> AfterValidator:
    """Make a check of a text from a predicate and the words that say what must be."""

    def check(value: str) -> str:
        if not holds(value):
            raise PydanticCustomError("rule", "{words}", {"words": words})
        return value

    return AfterValidator(check)


def _is_printable(value: str) -> bool:
    return value.isprintable()


def _is_absolute_path(value: str) -> bool:
    return value.startswith("/") and ".." not in value.split("/")


def _is_url(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    bare = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    return parts.scheme in schemes and bool(parts.hostname) and port != 0 and bare


def _is_database_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    secret = parts.password is not None or "password" in parse_qs(parts.query)
    named = len(parts.path) > 1 and not parts.fragment
    return parts.scheme == "postgresql" and named and port != 0 and not secret


def host_of(value: str) -> str:
    """Return the host of a URL, empty where there is none."""
    return urlsplit(value).hostname or ""


def _is_reachable(value: str) -> bool:
    return host_of(value) not in {"0.0.0.0", "::"}  # noqa: S104  # refused, not bound


def _not_empty(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise PydanticCustomError("rule", "must name at least one, or be left out")
    return values


Text = Annotated[str, _rule(_is_printable, "must have no control characters")]
Name = Annotated[Text, _rule(str.strip, "must not be empty")]
Texts = Annotated[tuple[Name, ...], Strict(False)]
Minutes = Annotated[tuple[Annotated[int, Field(ge=1, le=1440)], ...], Strict(False)]
AbsolutePath = Annotated[
    Text, _rule(_is_absolute_path, "must be an absolute path without '..' in it")
]
OptionalPath = Annotated[
    Text,
    _rule(
        lambda value: not value or _is_absolute_path(value),
        "must be an absolute path without '..' in it, or empty",
    ),
]
Paths = Annotated[tuple[AbsolutePath, ...], Strict(False)]
UsersFolder = Annotated[
    Text,
    _rule(
        lambda value: (
            re.fullmatch(r"((~|/)([A-Za-z0-9/._+@-]|\{user\})*)?", value)
            and (value[:2] in ("", "~/") or value.startswith("/"))
            and ".." not in value.split("/")
        ),
        "must be ~/FOLDER or an absolute path, of letters, digits and . _ + @ - and {user}, or "
        "empty",
    ),
]
NamedUsersFolders = Annotated[
    Mapping[
        Annotated[
            Text,
            _rule(
                lambda value: re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value),
                "must be letters, digits and . _ -",
            ),
        ],
        UsersFolder,
    ],
    AfterValidator(MappingProxyType),
]
SharesFolder = Annotated[
    UsersFolder,
    _rule(
        lambda value: not value or (value.startswith("/") and "{user}" in value),
        "must be an absolute path with {user} in it, or empty",
    ),
]
Umask = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"(0?0[0-7]{2})?", value),
        "must be an octal number such as 0027 that leaves the owner's rights alone, or empty",
    ),
]
BindUrl = Annotated[
    Text,
    _rule(
        lambda value: _is_url(value, ("http", "https")),
        "must be http://HOST:PORT or https://HOST:PORT",
    ),
]
HttpUrl = Annotated[
    BindUrl, _rule(_is_reachable, "must name an address that others can reach, not a wildcard")
]
SubdomainHost = Annotated[
    Text,
    _rule(
        lambda value: (
            not value
            or (_is_url(value, ("http", "https")) and re.search(r"[A-Za-z]", host_of(value)))
        ),
        "must be https://HOST[:PORT] with a name, not an IP address, or be empty",
    ),
]
DirectoryUrl = Annotated[
    Text,
    _rule(
        lambda value: _is_url(value, ("ldap", "ldaps")),
        "must be ldap://HOST[:PORT] or ldaps://HOST[:PORT]",
    ),
]
DirectoryUrls = Annotated[tuple[DirectoryUrl, ...], Strict(False)]
DatabaseUrl = Annotated[
    Text,
    _rule(
        lambda value: not value or _is_database_url(value),
        "must be postgresql://[USER@][HOST[:PORT]]/NAME[?OPTIONS] without a password, or empty; "
        "a password belongs into a file",
    ),
]
Mark = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", value),
        "must be 1 to 32 small letters, digits and hyphens",
    ),
]
DistinguishedName = Annotated[
    Text,
    _rule(
        lambda value: not value or re.fullmatch(r"[A-Za-z][\w-]*\s*=.+", value),
        "must be a distinguished name such as ou=people,dc=example,dc=org",
    ),
]
AttributeName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"([A-Za-z][A-Za-z0-9-]*)?", value),
        "must be the name of an attribute, such as uid",
    ),
]
DirectoryFilter = Annotated[
    Text,
    _rule(
        lambda value: not value or re.fullmatch(r"\(.+\)", value),
        "must be a filter in parentheses, such as (objectClass=person), or empty",
    ),
]
LoginName = Annotated[
    Text,
    _rule(
        lambda value: not value or value.count("{name}") == value.count("{") == value.count("}"),
        "must have {name} where the name belongs, such as {name}@corp.example, or be empty",
    ),
]
UnixName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"([a-z_][a-z0-9_-]{0,31})?", value),
        "must be a Unix name, or empty",
    ),
]
PartitionName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[A-Za-z0-9_.-]*", value),
        "must be the name of one partition, or empty",
    ),
]
Colour = Annotated[
    Text,
    _rule(lambda value: re.fullmatch(r"#[0-9a-fA-F]{6}", value), "must be a colour as #rrggbb"),
]
SupportUrl = Annotated[
    Text,
    _rule(
        lambda value: not value or re.fullmatch(r"(https?://|mailto:)[^\s\"'<>]+", value),
        "must start with https://, http:// or mailto:, or be empty",
    ),
]
OptionalPicture = Annotated[
    OptionalPath,
    _rule(
        lambda value: not value or re.search(r"\.(svg|png|jpg|webp)$", value),
        "must end with .svg, .png, .jpg or .webp, or be empty",
    ),
]
SlurmName = Annotated[
    Text,
    _rule(
        SLURM_NAME.fullmatch,
        "must be one word of letters, digits and _ . @ -",
    ),
]
SlurmNames = Annotated[
    tuple[SlurmName, ...],
    Strict(False),
    AfterValidator(_not_empty),
]
FolderName = Annotated[
    Text,
    _rule(
        lambda value: value and not value.startswith(".") and "/" not in value,
        "a folder's name must not be empty, hold a slash or start with a dot",
    ),
]
Folders = Annotated[Mapping[FolderName, AbsolutePath], AfterValidator(MappingProxyType)]
FolderNotes = Annotated[Mapping[FolderName, Text], AfterValidator(MappingProxyType)]
KernelName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", value),
        "a kernel's name must be small letters, digits and . _ -",
    ),
]
ModuleName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*", value),
        "must be the name of a module, such as pytorch/2.13",
    ),
]
ModuleNames = Annotated[tuple[ModuleName, ...], Strict(False)]
Program = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[A-Za-z0-9_.+-]+", value) or _is_absolute_path(value),
        "must be a program's name or its absolute path",
    ),
]
VariableName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value),
        "must be the name of a variable: letters, digits and _",
    ),
]
Environment = Annotated[Mapping[VariableName, Text], AfterValidator(MappingProxyType)]
Model = TypeVar("Model")
Tables = Annotated[Mapping[Name, Model], AfterValidator(MappingProxyType)]
"""Tables of one kind, by names that the site chooses; their order is the file's."""
KernelTables = Annotated[Mapping[KernelName, Model], AfterValidator(MappingProxyType)]
"""The same, for kernels: Jupyter has rules for their names."""
MarkTables = Annotated[Mapping[Mark, Model], AfterValidator(MappingProxyType)]
"""The same, for tools and images: their names are part of addresses and of files' names."""
