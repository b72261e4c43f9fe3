"""Settings of the web tools that sessions offer."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Strict, model_validator
from pydantic_core import PydanticCustomError

from dsportal.session_schema import WebTool
from dsportal.settings.table import Table, setting
from dsportal.values import Environment, ModuleNames, Name, OptionalPath, Text

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PLACEHOLDERS = ("unix_socket", "port", "base_url")


def _is_a_command(given: tuple[str, ...]) -> tuple[str, ...]:
    if not given or not given[0].strip():
        raise PydanticCustomError("rule", "must name a program, and then its arguments")
    for argument in given:
        for name in _PLACEHOLDER.findall(argument):
            if name not in _PLACEHOLDERS:
                known = ", ".join(f"{{{known}}}" for known in _PLACEHOLDERS)
                words = f"has the placeholder {{{name}}}; there are {known}"
                raise PydanticCustomError("rule", "{words}", {"words": words})
    return given


Command = Annotated[tuple[Text, ...], Strict(False), AfterValidator(_is_a_command)]


class ToolSettings(Table):
    """A web tool that sessions offer."""

    title: Name = setting(..., "The title of its card in the launcher.")
    icon: OptionalPath = setting(
        "", "The picture on the card, an SVG file on the compute nodes; empty for a built-in one."
    )
    command: Command = setting(
        ...,
        "The program and its arguments; a name without a path is looked up after the modules are "
        "loaded. `{unix_socket}` and `{port}` stand for the address to listen on, `{base_url}` "
        "for the path under which browsers see it, without a trailing slash; `~/` at the "
        "beginning of a word is the user's home.",
    )
    modules: ModuleNames = setting(
        (),
        "The modules to load before it starts, in this order. The tool has a card only where they "
        "can be loaded; without modules, where its program exists.",
    )
    environment: Environment = setting(
        {},
        "Additional environment variables and their values; placeholders and `~/` as in `command`.",
    )
    listens: Literal["unix_socket", "port"] = setting(
        WebTool.listens,
        "Where it listens. Choose a Unix socket if the tool supports it: only the user can reach "
        "it.",
    )
    port: int | None = setting(
        None,
        "The port of a tool that always uses the same one. If not set, the tool is given a free "
        "one as `{port}`.",
        ge=1024,
        le=65535,
    )
    network: Literal["own", "shared"] | None = setting(
        None,
        "The network that it runs in. `own`: a network of its own, so that nobody else reaches "
        "its port, and it reaches no other machine; files are as usual. `shared`: the node's, "
        "where **every user of the node can reach its port**. If not set: `own` for a port, "
        "`shared` for a Unix socket.",
    )
    absolute_url: bool = setting(
        WebTool.absolute_url,
        "Whether it expects the whole path of a request, beginning with `{base_url}`; otherwise "
        "all paths that it sees begin with `/`.",
    )
    start_timeout_seconds: int = setting(
        WebTool.start_timeout_seconds,
        "How long it may take until it responds.",
        unit="seconds",
        ge=1,
        le=600,
    )

    @model_validator(mode="after")
    def _it_is_told_where_to_listen(self) -> Self:
        told = set(self._placeholders())
        is_socket = self.listens == "unix_socket"
        problems = {
            "command must have {unix_socket}": is_socket and "unix_socket" not in told,
            'port needs listens = "port"': is_socket and (self.port or "port" in told),
            '{unix_socket} needs listens = "unix_socket"': not is_socket and "unix_socket" in told,
            "port must be set, or command must have {port}": (
                not is_socket and self.port is None and "port" not in told
            ),
        }
        for words, is_so in problems.items():
            if is_so:
                raise PydanticCustomError("rule", "{words}", {"words": words})
        return self

    @property
    def has_own_network(self) -> bool:
        """Whether nobody else reaches its ports."""
        return (self.network or ("own" if self.listens == "port" else "shared")) == "own"

    def _placeholders(self) -> Iterator[str]:
        for word in (*self.command, *self.environment.values()):
            yield from _PLACEHOLDER.findall(word)
