"""Checks of the host itself: mounts, disks, clock, names, services."""

import ctypes
import os
import socket
import time
from email.utils import parsedate_to_datetime
from pathlib import Path

from dsportal.doctor.checks.web import NO_ANSWER, asked
from dsportal.doctor.expected import Mount, Services
from dsportal.doctor.finding import Finding, failed, ok, worst
from dsportal.doctor.judgement import clock, disks, mounts
from dsportal.doctor.judgement import services as judged
from dsportal.doctor.programs import ask


def mount(expected: Mount) -> Finding:
    """Ask the server behind a mount, which makes autofs mount it; then compare it."""
    try:
        os.statvfs(expected.path)
    except OSError as error:
        step = f"ask the server behind it; then umount -l {expected.path} and mount it again"
        return failed(f"{error.strerror}", step)
    mountinfo = Path("/proc/self/mountinfo").read_bytes().decode(errors="replace")
    return mounts.judge(expected, mountinfo)


def disk(path: str) -> Finding:
    """Ask how much room there is."""
    try:
        found = os.statvfs(path)
    except OSError as error:
        return failed(f"{error.strerror}", f"make {path}, or deploy this host again")
    free = found.f_bavail * found.f_frsize
    return disks.judge(path, free, found.f_blocks * found.f_frsize, found.f_favail, found.f_files)


class _Timex(ctypes.Structure):
    """The beginning of struct timex (adjtimex(2)), and room for the rest."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def kernel_clock() -> Finding:
    """Ask the kernel whether something keeps its clock right."""
    answer = _Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(answer)) < 0:
        return failed(f"adjtimex: {os.strerror(ctypes.get_errno())}", "look at `timedatectl`")
    return clock.judge_kernel(answer.status, answer.maxerror / 1e6)


def clock_beside_hub(url: str) -> Finding:
    """Compare this clock with the Date of an answer of the hub's."""
    before = time.time()
    try:
        date = asked(url, "/hub/api/").date
    except NO_ANSWER as error:
        return failed(f"{url} does not answer: {error}", "let this host reach the hub's port")
    if not date:
        return failed("the hub tells no time", "ask it through its own address")
    here = (before + time.time()) / 2
    # The header has whole seconds, cut off.
    return clock.judge_against_hub(here - (parsedate_to_datetime(date).timestamp() + 0.5))


def host_name(name: str) -> Finding:
    """Ask for a host's addresses, and for the names of these."""
    try:
        addresses = {str(one[4][0]) for one in socket.getaddrinfo(name, None)}
    except OSError as error:
        return failed(f"{error.strerror}", f"put {name} into DNS or /etc/hosts")
    return worst([_name_back(name, address) for address in sorted(addresses)])


def _name_back(name: str, address: str) -> Finding:
    try:
        back, _ = socket.getnameinfo((address, 0), socket.NI_NAMEREQD)
    except OSError:
        return failed(f"{address} has no name", f"put {address} into DNS's reverse zone")
    return ok(f"{address}, which is {back}")


def services(expected: Services) -> Finding:
    """Ask what starts services here which of the portal's do not run."""
    if expected.supervisorctl:
        answer = ask(*expected.supervisorctl, "status")
        if answer.status is None:
            return failed(answer.last_words, "deploy this host again")
        return judged.judge_supervisor(answer.said)
    asked = ("--all", "--plain", "--no-legend", expected.systemd_units)
    units = ask("systemctl", "list-units", *asked)
    unit_files = ask("systemctl", "list-unit-files", *asked)
    if units.status is None or unit_files.status is None:
        return failed(units.last_words, "look whether systemd answers: systemctl status")
    return judged.judge_systemd(units.said, unit_files.said)
