"""Access to the user's environments from a session: folders, command, modules."""

import logging
import sys
import threading
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
_SECONDS = 10.0


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


def module_paths(folders: EnvironmentFolders | None, seconds: float = _SECONDS) -> tuple[str, ...]:
    """Return the folder of their modulefiles; none where somebody else could put one.

    A modulefile is a program, and modules run what is there whenever one is loaded. A folder that
    does not answer is left out, too: each load would wait for it.
    """
    if folders is None:
        return ()
    first, answers = folders.first, list[bool]()
    asking = threading.Thread(
        target=lambda: answers.append(first.has_own_modulefiles()), daemon=True
    )
    asking.start()
    asking.join(seconds)
    if answers == [True]:
        return (str(first.modulefiles),)
    reason = "it is not the user's own" if answers else "it does not answer"
    log.warning("No modules of one's own environments in %s: %s", first.path, reason)
    return ()


def command_variables(folders: EnvironmentFolders | None, conda: str | None) -> dict[str, str]:
    """Return the variables of the command, and where it is; ``conda`` is the site's program."""
    return {
        **({PROGRAM_VARIABLE: conda} if conda else {}),
        FOLDERS_VARIABLE: folders.variable if folders else "",
        PYTHON_VARIABLE: sys.executable,
        "PATH": str(_PROGRAMS),
    }
