"""The portal's settings: ``portal.toml`` read, checked and frozen.

The file is the product's surface: each key has a type, a unit, a default and one sentence here, and
``docs/reference/settings.md`` is made from them. All problems of a file are reported at once, each
on one line: file and line, key, value, rule.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

_LONGEST_VALUE_SHOWN = 60


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has one line for each reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


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


def _host(value: str) -> str:
    return urlsplit(value).hostname or ""


def _is_reachable(value: str) -> bool:
    return _host(value) not in {"0.0.0.0", "::"}  # noqa: S104  # refused, not bound


Text = Annotated[str, _rule(_is_printable, "must have no control characters")]
Name = Annotated[Text, _rule(str.strip, "must not be empty")]
Texts = Annotated[tuple[Name, ...], Strict(False)]
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
        lambda value: not value or re.match(r"(sqlite|postgresql|mysql)(\+\w+)?://", value),
        "must start with sqlite://, postgresql:// or mysql://, or be empty",
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
        lambda value: re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", value),
        "must be the name of an attribute, such as uid",
    ),
]
PartitionName = Annotated[
    Text,
    _rule(
        lambda value: re.fullmatch(r"[A-Za-z0-9_.-]*", value),
        "must be the name of one partition, or empty",
    ),
]
FolderName = Annotated[
    Text,
    _rule(
        lambda value: value and not value.startswith(".") and "/" not in value,
        "a folder's name must not be empty, hold a slash or start with a dot",
    ),
]
Folders = Annotated[Mapping[FolderName, AbsolutePath], AfterValidator(MappingProxyType)]


def setting(
    default: Any, sentence: str, *, unit: str = "", secret: bool = False, **rules: Any
) -> Any:
    """Describe one key: its default (``...`` for none), what it is for, its unit and its range.

    The value of a ``secret`` key is never shown.
    """
    return Field(
        default,
        description=sentence,
        json_schema_extra={"unit": unit, "secret": secret},
        repr=not secret,
        **rules,
    )


class Table(BaseModel):
    """A table of the file: unknown keys are refused, types are not converted, nothing changes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=True
    )


class Hub(Table):
    """Where the hub and the proxy listen, and where the hub keeps its state."""

    name: Mark = setting(
        "portal",
        "Marks this hub's jobs in Slurm; two hubs on one cluster need different ones.",
    )
    public_url: BindUrl = setting(
        "http://0.0.0.0:8000",  # the portal is for other machines
        "Where the proxy listens for browsers; 0.0.0.0 stands for all addresses.",
    )
    api_url: HttpUrl = setting(
        "http://127.0.0.1:8081",
        "Where the hub listens, as the proxy and the sessions on the compute nodes reach it.",
    )
    proxy_api_url: HttpUrl = setting(
        "http://127.0.0.1:8001", "Where the proxy takes the hub's instructions."
    )
    state_dir: AbsolutePath = setting(
        "/var/lib/data-scientist-portal/hub",
        "The folder with the hub's database and its cookie secret; the hub's user owns it.",
    )
    database_url: DatabaseUrl = setting(
        "", "The hub's database; empty for an SQLite file in `state_dir`.", secret=True
    )

    @model_validator(mode="after")
    def _no_two_listen_at_one_place(self) -> Self:
        ports = [urlsplit(url).port for url in (self.public_url, self.api_url, self.proxy_api_url)]
        hosts = [_host(self.api_url), _host(self.proxy_api_url)]
        if ports[0] in ports[1:] or (ports[1] == ports[2] and hosts[0] == hosts[1]):
            raise PydanticCustomError(
                "rule", "public_url, api_url and proxy_api_url need different ports"
            )
        return self


class Ldap(Table):
    """The directory that knows the users and their groups."""

    servers: DirectoryUrls = setting(
        (), "The directory's servers; the first that answers is asked, the others stand by."
    )
    start_tls: bool = setting(
        False, "Encrypts ldap:// connections before the password is sent; ldaps:// always is."
    )
    ca_file: OptionalPath = setting(
        "", "The authorities (PEM) that sign the servers' certificates; empty for the system's."
    )
    user_base: DistinguishedName = setting("", "The branch of the directory with the users.")
    user_attribute: AttributeName = setting(
        "uid", "The attribute of a user that holds the Unix name."
    )
    group_base: DistinguishedName = setting("", "The branch of the directory with the groups.")
    group_attribute: AttributeName = setting("cn", "The attribute of a group that holds its name.")
    bind_dn: DistinguishedName = setting(
        "",
        "The account that looks users up; empty where a user's entry is "
        "`user_attribute=NAME,user_base` itself.",
    )
    bind_password_file: OptionalPath = setting(
        "", "The file with the password of `bind_dn`, readable by the hub's user only."
    )
    connect_timeout_seconds: int = setting(
        3, "How long one server may take to accept a connection.", unit="seconds", ge=1, le=60
    )
    receive_timeout_seconds: int = setting(
        5, "How long one server may take for one answer.", unit="seconds", ge=1, le=60
    )
    login_timeout_seconds: int = setting(
        20, "How long one login may take in all, over all servers.", unit="seconds", ge=1, le=300
    )

    @model_validator(mode="after")
    def _account_has_a_password(self) -> Self:
        if bool(self.bind_dn) != bool(self.bind_password_file):
            raise PydanticCustomError("rule", "bind_dn and bind_password_file go together")
        return self


class Authentication(Table):
    """Who may log in, and who is an admin."""

    method: Literal["ldap", "pam"] = setting(
        "ldap", "Asks the directory (`ldap`) or the machine's own accounts (`pam`)."
    )
    allowed_groups: Texts = setting((), "The groups whose members may log in.")
    admin_groups: Texts = setting((), "The groups whose members are admins; they may log in too.")
    contact: Name = setting(
        "the administrators of the portal", "Whom a user who may not log in is told to ask."
    )
    ldap: Ldap = Ldap()

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> Self:
        if not (self.allowed_groups or self.admin_groups):
            raise PydanticCustomError(
                "rule", "allowed_groups or admin_groups must name a group, or nobody can log in"
            )
        return self

    @model_validator(mode="after")
    def _directory_is_known(self) -> Self:
        needed = ("servers", "user_base", "group_base")
        missing = [key for key in needed if not getattr(self.ldap, key)]
        if self.method == "ldap" and missing:
            keys = ", ".join(f"authentication.ldap.{key}" for key in missing)
            raise PydanticCustomError("rule", 'method = "ldap" needs {keys}', {"keys": keys})
        return self


class Slurm(Table):
    """How the hub reaches Slurm."""

    config_file: AbsolutePath = setting("/etc/slurm/slurm.conf", "Slurm's configuration.")
    bin_dir: AbsolutePath = setting("/usr/bin", "The folder with squeue, sinfo and scontrol.")
    launcher: AbsolutePath = setting(
        "/opt/data-scientist-portal/libexec/portal/slurm-launcher",
        "The one program that sudo lets the hub run as a user.",
    )
    sudo: AbsolutePath = setting("/usr/bin/sudo", "The sudo program.")
    query_interval_seconds: float = setting(
        2.0,
        "The time between two questions to squeue, for all sessions together.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    command_timeout_seconds: float = setting(
        20.0, "How long a program of Slurm may take to answer.", unit="seconds", ge=1, le=600
    )


class Session(Table):
    """What a session gets, and what it runs."""

    python: AbsolutePath = setting(
        ..., "The interpreter of the session's environment, on the compute nodes."
    )
    cores_per_gpu: int = setting(8, "The CPU cores that come with each GPU.", unit="cores", ge=1)
    memory_mb_per_gpu: int = setting(
        49152, "The memory that comes with each GPU.", unit="MiB", ge=256
    )
    cores_without_gpu: int = setting(
        2, "The CPU cores of a session without GPUs.", unit="cores", ge=1
    )
    memory_mb_without_gpu: int = setting(
        12288, "The memory of a session without GPUs.", unit="MiB", ge=256
    )
    default_gpus: int = setting(1, "The GPUs that the form proposes.", unit="GPUs", ge=0)
    default_hours: float = setting(
        8.0, "The session time that the form proposes.", unit="hours", gt=0, le=8760
    )
    default_partition: PartitionName = setting(
        "", "The partition that the form proposes; empty for the cluster's default."
    )
    start_timeout_seconds: int = setting(
        300,
        "How long a session may take from its job's start on a node until it can be used.",
        unit="seconds",
        ge=10,
        le=3600,
    )
    queue_timeout_hours: float = setting(
        12.0,
        "How long a session may wait for free GPUs before the hub gives it up.",
        unit="hours",
        gt=0,
        le=720,
    )
    tensorboard_python: OptionalPath = setting(
        "", "The interpreter of TensorBoard's environment; empty for no TensorBoard."
    )
    jupyter_path: Paths = setting((), "The folders with kernels for all users (JUPYTER_PATH).")
    folders: Folders = setting(
        {}, "The links made in a user's home: a name, and the folder it leads to."
    )


class Settings(Table):
    """All of ``portal.toml``."""

    hub: Hub = Hub()
    authentication: Authentication
    slurm: Slurm = Slurm()
    session: Session


def load(file: Path) -> Settings:
    """Read and check a settings file; raise SettingsError with all that is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: is not text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: is not TOML: {error}") from error
    lines = _line_numbers(text)
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        found = sorted(_problem(lines, detail) for detail in error.errors(include_url=False))
        problems = (
            f"{file}:{line}: {words}" if line else f"{file}: {words}" for line, words in found
        )
        raise SettingsError(*problems) from error


def _problem(lines: Mapping[str, int], detail: ErrorDetails) -> tuple[int, str]:
    """Say on which line (0: none), and in one line what is wrong: key, value, rule."""
    keys = [str(part) for part in detail["loc"] if isinstance(part, str) and part != "[key]"]
    shown = "" if detail["type"] in _WITHOUT_VALUE else f" = {_shown(keys, detail['input'])}"
    return _line_of(lines, keys), f"{_printable('.'.join(keys))}{shown}: {_words(detail, keys)}"


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


def _words(detail: ErrorDetails, keys: list[str]) -> str:
    bounds: Mapping[str, Any] = detail.get("ctx", {})
    kind = detail["type"]
    if kind == "extra_forbidden":
        return "is not a known key" + _did_you_mean(keys)
    if kind in _TYPE_WORDS:
        return _TYPE_WORDS[kind]
    for bound, words in _BOUND_WORDS.items():
        if bound in bounds and kind != "literal_error":
            unit = _extra(keys, "unit")
            return f"must be {words} {bounds[bound]:g}{f' ({unit})' if unit else ''}"
    if kind == "literal_error":
        return f"must be {bounds['expected']}"
    return detail["msg"]


_WITHOUT_VALUE = {"missing", "extra_forbidden"}
_TYPE_WORDS = {
    "missing": "must be set",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a number that is finite",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "mapping_type": "must be a table",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}
_BOUND_WORDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


def _did_you_mean(keys: list[str]) -> str:
    table = table_at(keys[:-1])
    near = difflib.get_close_matches(keys[-1], table.model_fields, n=1) if table else []
    return f"; did you mean {near[0]}?" if near else ""


def _extra(keys: list[str], name: str) -> str:
    table = table_at(keys[:-1])
    field = table.model_fields.get(keys[-1]) if table else None
    extra = field.json_schema_extra if field else None
    return str(extra.get(name) or "") if isinstance(extra, dict) else ""


def table_at(keys: list[str]) -> type[Table] | None:
    """Give the table's model at a path of keys, None where there is none."""
    table: type[Table] = Settings
    for key in keys:
        inner = table.model_fields[key].annotation if key in table.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, Table)):
            return None
        table = inner
    return table


def _shown(keys: list[str], value: object) -> str:
    if keys and _extra(keys, "secret"):
        return "(not shown)"
    if isinstance(value, Mapping | Table):
        return "{...}"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE_SHOWN else text[: _LONGEST_VALUE_SHOWN - 3] + "..."


_TABLE_LINE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY_LINE = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w.-]+)\s*=""")


def _line_numbers(text: str) -> Mapping[str, int]:
    """Find the lines of tables and keys; tomllib does not tell them."""
    numbers: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE_LINE.match(line):
            table = header[1]
            numbers.setdefault(table, number)
        elif key := _KEY_LINE.match(line):
            name = key[1].strip("\"'")
            numbers.setdefault(f"{table}.{name}" if table else name, number)
    return numbers


def _line_of(lines: Mapping[str, int], keys: list[str]) -> int:
    candidates: Iterator[str] = (".".join(keys[:end]) for end in range(len(keys), 0, -1))
    return next((lines[key] for key in candidates if key in lines), 0)
