"""The API's description, OpenAPI 3.1. The rows' schemas are made from the rows' own types."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from dsportal.cluster.sessions import SessionRow
from dsportal.cluster.usage import DAYS
from dsportal.cluster.view import GpuCount, JobRow, NodeRow, PartitionRow


class ClusterAnswer(TypedDict):
    """The nodes and partitions."""

    as_of: float
    trouble: str | None
    gpus: GpuCount
    partitions: list[PartitionRow]
    nodes: list[NodeRow]


class JobsAnswer(TypedDict):
    """All jobs that have not ended."""

    as_of: float
    trouble: str | None
    jobs: list[JobRow]


class SessionsAnswer(TypedDict):
    """The portal's running and starting sessions."""

    as_of: float
    trouble: str | None
    sessions: list[SessionRow]


class UsageAnswer(TypedDict):
    """GPU hours. A row names its user or group, and what was used."""

    days: int
    by: str
    trouble: str | None
    rows: list[dict[str, Any]]


class ErrorResponse(TypedDict):
    """An error's status and message."""

    status: int
    message: str


_ANSWERS = (ClusterAnswer, JobsAnswer, SessionsAnswer, UsageAnswer, ErrorResponse)
_MOMENTS = "Moments are seconds since 1970; what is not known is null."
_ABOUT = f"""\
How the cluster is, as Slurm told it at one moment for all who ask. Names of other users and of \
their jobs are null, unless an admin asks, or the portal's settings show them to all. {_MOMENTS}
Authorise with the header `Authorization: token ...`: a token of the hub with the scope \
`access:services!service=cluster`, which every user's token and every session's has."""
_EVENTS = """\
Server-sent events: `cluster` and `jobs`, whose data are the answers of the other two addresses, \
whenever one of them changed; `heartbeat` with `as_of` and `trouble` when nothing did; `end` when \
the login or the token is no longer good."""


@cache
def description(prefix: str) -> dict[str, Any]:
    """Describe the API below the service's address."""
    schemas: dict[str, Any] = {}
    for answer in _ANSWERS:
        schema = TypeAdapter(answer).json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[answer.__name__] = schema
    for schema in schemas.values():
        # A key that is not described is a mistake.
        schema["additionalProperties"] = False
    return {
        "openapi": "3.1.0",
        "info": {"title": "The cluster", "version": "1", "description": _ABOUT},
        "servers": [{"url": prefix}],
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "Authorization"}
            },
        },
    }


def _paths() -> dict[str, Any]:
    stop = {"summary": "Stop a session (admins)", "responses": _responses("202", None)}
    usage = {"parameters": _usage_parameters()}
    return {
        "/api/v1/cluster": {"get": _get("The nodes and each GPU", "ClusterAnswer")},
        "/api/v1/jobs": {
            "get": _get("The queue", "JobsAnswer"),
            "parameters": [_parameter("own", "query", {"type": "boolean", "default": False})],
        },
        "/api/v1/events": {
            "get": _get("Both, as they change", None, "text/event-stream")
            | {"description": _EVENTS}
        },
        "/api/v1/sessions": {"get": _get("The sessions (admins)", "SessionsAnswer")},
        "/api/v1/sessions/{user}/{server}": {
            "parameters": [
                _parameter("user", "path", {"type": "string"}),
                # The unnamed server is an empty name.
                _parameter("server", "path", {"type": "string"}),
            ],
            "delete": stop,
        },
        "/api/v1/usage": {"get": _get("GPU hours (admins)", "UsageAnswer")} | usage,
        "/api/v1/usage.csv": {"get": _get("The same as CSV (admins)", None, "text/csv")} | usage,
    }


def _get(summary: str, answer: str | None, kind: str = "application/json") -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{answer}"} if answer else {"type": "string"}
    return {"summary": summary, "responses": _responses("200", {kind: {"schema": schema}})}


def _responses(status: str, content: dict[str, Any] | None) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "It is so." if content else "It is being done."}
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
    return {
        status: good | ({"content": content} if content else {}),
        "default": {"description": "It was refused, or could not be done.", "content": refusal},
    }


def _usage_parameters() -> list[dict[str, Any]]:
    return [
        _parameter("days", "query", {"enum": list(DAYS), "default": 7}),
        _parameter("by", "query", {"enum": ["user", "group"], "default": "user"}),
    ]


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}
