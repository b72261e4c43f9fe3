"""PAM modules of Slurm on the portal's machine: which of its logins they could refuse."""

import re
from collections.abc import Iterator, Mapping

from dsportal.doctor.finding import Finding, failed, ok, warning
from dsportal.doctor.judgement.attachment.names import some

_MODULE = re.compile(r"(?:^|/)(pam_slurm(?:_adopt)?)\.so$")
_INCLUDES = {"include", "substack"}


def judge(files: Mapping[str, str]) -> Finding:
    """Read the files of /etc/pam.d, by their names: pam.conf(5).

    pam_slurm_adopt does nothing but for sshd, unless its argument ``service=`` names another
    service or is ``*``; pam_slurm, the older one, asks in every service that names it.
    """
    asking = {name: module for name in files if (module := _module(files, name))}
    if module := asking.get("sudo", ""):
        return failed(
            f"/etc/pam.d/sudo asks {module}, which refuses the hub: it has no job here",
            f"keep {module} to sshd: the hub submits each session by sudo",
        )
    if module := asking.get("login", ""):
        return warning(
            f"/etc/pam.d/login asks {module}: logins of authentication.method = pam are refused",
            f"keep {module} to sshd, or use the directory",
        )
    # What only other files include is no service of its own, and is told with those.
    if asking:
        return ok(
            f"{some(asking.values())} in {some(asking)} of /etc/pam.d: a session is a job and no "
            "login, and the portal logs in to no node"
        )
    return ok("not restricted here; where nodes do, a session is a job and no login")


def _module(files: Mapping[str, str], service: str) -> str:
    """Give the module of Slurm that a service asks, "" for none."""
    for words in _lines(files, service, set()):
        for place, word in enumerate(words):
            if (found := _MODULE.search(word)) and _acts(found[1], words[place + 1 :], service):
                return found[1]
    return ""


def _acts(module: str, arguments: list[str], service: str) -> bool:
    named = [word.partition("=")[2] for word in arguments if word.startswith("service=")]
    return module == "pam_slurm" or (named[-1] if named else "sshd") in ("*", service)


def _lines(files: Mapping[str, str], name: str, seen: set[str]) -> Iterator[list[str]]:
    """Give the lines of a service, with those that it includes."""
    if name in seen:
        return
    seen.add(name)
    for line in files.get(name, "").replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["@include"] and len(words) > 1:
            yield from _lines(files, words[1], seen)
        elif len(words) > 2 and words[1] in _INCLUDES:
            yield from _lines(files, words[2], seen)
        else:
            yield words
