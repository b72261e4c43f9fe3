"""How what runs in a session comes to the user's environments: folder, command, modules."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from dsportal.session.own_environments.records import (
    FOLDER_VARIABLE,
    EnvironmentFolder,
    OwnEnvironmentError,
    folder_from,
)

log = logging.getLogger(__name__)

PYTHON_VARIABLE = "PORTAL_SESSION_PYTHON"
"""The interpreter that runs the command: the session's."""
_PROGRAMS = Path(__file__).with_name("bin")


def own_folder(setting: str, home: str, user: str) -> EnvironmentFolder | None:
    """Return the folder of a user's environments; ``None`` where there are none to be."""
    if not setting:
        return None
    try:
        return EnvironmentFolder(folder_from(setting, home, user))
    except OwnEnvironmentError as error:
        log.warning("No environments of one's own: %s", error)
        return None


def told_folder(environment: Mapping[str, str]) -> EnvironmentFolder | None:
    """Return the folder as a session's own variables have it."""
    path = environment.get(FOLDER_VARIABLE)
    return EnvironmentFolder(Path(path)) if path else None


def command_variables(folder: EnvironmentFolder | None) -> dict[str, str]:
    """Return the variables of the command, and where it is."""
    return {
        FOLDER_VARIABLE: str(folder.path) if folder else "",
        PYTHON_VARIABLE: sys.executable,
        "PATH": str(_PROGRAMS),
    }
