"""The page of all variables of the roles, from their argument specs and defaults.

python deploy/roles_reference.py PAGE
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROLES = Path(__file__).resolve().parent / "ansible/roles"
HEAD = """\
# Variables of the roles

<!-- Made by `python deploy/roles_reference.py docs/reference/roles.md`: change the roles'
meta/argument_specs.yml and defaults/main.yml, not this page. -->

What an inventory can set, role by role; a machine has the roles whose groups it is in. A role's
`defaults/main.yml` says more on why a default is as it is.
"""


def read(path: Path) -> dict[str, Any]:
    """Return a file of a role; nothing where the role has none."""
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def described(role: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return a role's sentence and its variables, as its argument specs have them."""
    spec = read(role / "meta/argument_specs.yml").get("argument_specs", {}).get("validate", {})
    return str(spec.get("short_description", "")), spec.get("options", {})


def defaults(role: Path) -> dict[str, Any]:
    """Return a role's defaults, not evaluated."""
    return read(role / "defaults/main.yml")


def roles() -> list[Path]:
    """Return the roles that have variables, but for what only the tests need."""
    found = (role for role in sorted(ROLES.iterdir()) if role.name != "test_tools")
    return [role for role in found if described(role)[1]]


def cell(value: object) -> str:
    """Return a default as a cell of a table."""
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return "`" + text.replace("|", "\\|") + "`" if text else "empty"


def section(role: Path) -> str:
    """Return a role's table."""
    sentence, options = described(role)
    known = defaults(role)
    lines = [
        f"\n## {role.name}\n",
        f"{sentence}\n",
        "| variable | type | default | |",
        "| --- | --- | --- | --- |",
    ]
    for name, option in options.items():
        kind = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
        default = cell(known[name]) if name in known else "must be set"
        about = str(option["description"]).replace("|", "\\|")
        lines.append(f"| `{name}` | {kind} | {default} | {about} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(section(role) for role in roles())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
