"""How a directory of the tests is laid out: people and groups, a branch for each (RFC 2307)."""

from dsportal.authentication.layout import SCHEMAS, Layout

_SCHEMA = SCHEMAS["posix"]
POSIX = Layout(
    kind="posix",
    user_base="ou=people,dc=example",
    user_attribute=_SCHEMA.user_attribute,
    user_filter=_SCHEMA.user_filter,
    group_base="ou=groups,dc=example",
    group_attribute=_SCHEMA.group_attribute,
    group_filter=_SCHEMA.group_filter,
)
