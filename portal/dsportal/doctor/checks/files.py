"""Checks of files: secrets, certificates, the rule for sudo, the hub's settings."""

import contextlib
import glob
import os
import pwd
import ssl
from datetime import UTC, datetime
from pathlib import Path

from dsportal.doctor.expected import (
    ExpectedBackup,
    ExpectedCertificate,
    ExpectedHub,
    PrivateFile,
    Sudo,
)
from dsportal.doctor.finding import Finding, failed, ok, warning, worst
from dsportal.doctor.judgement import days, modes
from dsportal.doctor.programs import ask


def private(expected: PrivateFile) -> Finding:
    """Look whether a secret is one."""
    try:
        found = os.stat(expected.path)
    except OSError as error:
        return failed(f"{error.strerror}", "deploy this host again: it makes what is missing")
    try:
        owner = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        owner = str(found.st_uid)
    return modes.judge(expected.path, found.st_mode, owner, expected.owner)


def certificate(expected: ExpectedCertificate) -> Finding:
    """Read how long certificates are good."""
    files = sorted(glob.glob(expected.file))
    if not files:
        return failed(f"{expected.file} is not there", "see hub.certificate_file in portal.toml")
    return worst([_certificate(Path(file)) for file in files])


def _certificate(file: Path) -> Finding:
    answer = ask("openssl", "x509", "-noout", "-enddate", "-in", str(file))
    # notAfter=Nov 21 19:11:00 2027 GMT
    _, equals, until = answer.said.strip().partition("=")
    if answer.status != 0 or not equals:
        return failed(f"{file}: {answer.last_words}", f"put a certificate in PEM into {file}")
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC)
    return days.judge(ends, datetime.now(UTC), f"put a new certificate into {file}")


def backup(expected: ExpectedBackup) -> Finding:
    """Look how old the newest of some files is."""
    made = [Path(file).stat().st_mtime for file in glob.glob(expected.file)]
    if not made:
        return _no_backup(expected)
    hours = (datetime.now(UTC).timestamp() - max(made)) / 3600
    age = "1 hour" if round(hours) == 1 else f"{hours:.0f} hours"
    words = f"the newest of {len(made)} is {age} old"
    if hours > expected.hours:
        return failed(words, f"see why none is made every {expected.hours:g} hours")
    return ok(words)


def _no_backup(expected: ExpectedBackup) -> Finding:
    """Be patient with a folder that was made a while ago."""
    found, step = f"there is no {expected.file}", "make a backup, and see what should make it"
    with contextlib.suppress(OSError):
        age = datetime.now(UTC).timestamp() - Path(expected.file).parent.stat().st_mtime
        if age < expected.hours * 3600:
            return warning(f"{found} yet", f"one is made within {expected.hours:g} hours")
    return failed(found, step)


def sudo(expected: Sudo) -> Finding:
    """Let visudo read the hub's rule, and see that nobody else can change what it allows."""
    answer = ask("visudo", "-c", "-f", expected.file)
    if answer.status != 0:
        return failed(answer.last_words, "deploy the portal again: sudo refuses its rule")
    listed = ask("sudo", "-n", "-l", "-U", expected.user)
    if expected.launcher not in listed.said:
        step = "deploy the portal again, and see that /etc/sudoers includes /etc/sudoers.d"
        return failed(f"does not let {expected.user} run {expected.launcher}", step)
    for path in (Path(expected.launcher), *Path(expected.launcher).parents):
        found = path.stat()
        if found.st_uid != 0 or found.st_mode & 0o022:
            step = f"chown root {path}; chmod go-w {path}; and look who changed what"
            return failed(f"users other than root can change {path}", step)
    return ok(f"{expected.user} may run the launcher, which is root's")


def settings(expected: ExpectedHub) -> Finding:
    """Let the hub's own program read its settings."""
    command = ("-Im", "dsportal.cli", "settings", "check", expected.settings_file)
    # It computes; it waits for nobody.
    answer = ask(expected.python, *command, seconds=25)
    if answer.status == 0:
        return ok("can be used")
    problems = answer.complained.strip().splitlines()
    return failed("; ".join(problems) or answer.last_words, "correct it, and deploy again")
