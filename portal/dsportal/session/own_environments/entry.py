"""Access to the user's environments from a session: folders, command, modules."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from dsportal.session.own_environments.conda import PROGRAM_VARIABLE
from dsportal.session.own_environments.folders import FOLDERS_VARIABLE, EnvironmentFolders
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    OwnEnvironmentError,
    folder_from,
)

log = logging.getLogger(__name__)

PYTHON_VARIABLE = "PORTAL_SESSION_PYTHON"
"""The interpreter that runs the command: the session's."""
_PROGRAMS = Path(__file__).with_name("bin")


def own_folders(settings: Mapping[str, str], home: str, user: str) -> EnvironmentFolders | None:
    """Return the folders of a user's environments; ``None`` where there are none to be."""
    found = []
    for name, setting in settings.items():
        if not setting:
            continue
        try:
            found.append(EnvironmentFolder(folder_from(setting, home, user), name))
        except OwnEnvironmentError as error:
            log.warning("No environments of one's own in %s: %s", name, error)
    return EnvironmentFolders(tuple(found)) if found else None


def command_variables(folders: EnvironmentFolders | None, conda: str | None) -> dict[str, str]:
    """Return the variables of the command, and where it is; ``conda`` is the site's program."""
    return {
        **({PROGRAM_VARIABLE: conda} if conda else {}),
        FOLDERS_VARIABLE: folders.variable if folders else "",
        PYTHON_VARIABLE: sys.executable,
        "PATH": str(_PROGRAMS),
    }
