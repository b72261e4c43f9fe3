"""Root file systems of a Debian or Ubuntu, made once with the packages that machines need."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bootstrap
import yaml

from tests.debian import building

SUITE = "bookworm"
"""Debian 12, which tests take where they name no other; this machine's own, too."""
SYSTEMS = {"bookworm": "debian-12", "trixie": "debian-13", "noble": "ubuntu-24"}
"""What role packages calls them."""
_UBUNTU = ("noble",)
_ARCHIVE_OF_UBUNTU = "http://archive.ubuntu.com/ubuntu"
# What is there before anything else: an init, what a clone needs, a network.
INCLUDED = ("systemd", "systemd-sysv", "dbus", "ca-certificates", "git", "make", "iproute2")
HARDWARE = (
    *("nvidia_driver", "nvidia_fabric_manager", "nvidia_toolkit", "infiniband"),
    "nas_mounts_fs_cache",
)
"""Of role packages' lists, those for what no machine of a test has."""
APT_SETTINGS = tuple(Path("/etc/apt/apt.conf.d").glob("99*"))
"""What this machine's administrator has told apt."""
_APT_LISTS = Path("/var/lib/apt/lists")
# Packages start nothing while they are installed (Debian policy, 9.3.3.1).
_START_NOTHING = "#!/bin/sh\nexit 101\n"
# What a machine's administrator has switched off, for Ansible to switch on what it needs.
_WANTS = ("multi-user.target.wants", "timers.target.wants", "sockets.target.wants")
_KEPT = ("ssh.service", "systemd-networkd.service", "systemd-networkd.socket", "dbus.socket")


def install_tools(*names: str) -> None:
    """Install what role test_tools does, where it is missing: not all tests have an instance."""
    missing = [name for name in names if not Path("/usr/share/doc", name).exists()]
    if missing:
        if not any(_APT_LISTS.glob("*Packages*")):
            building.call(["/usr/bin/apt-get", "-q", "update"], seconds=300)
        apt = ["/usr/bin/apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "install", "-y"]
        building.call(
            [*apt, "--no-install-recommends", *missing],
            seconds=900,
            DEBIAN_FRONTEND="noninteractive",
        )


def system(name: str) -> dict[str, Any]:
    """Return what role packages says of a system such as ``debian-12``."""
    file = bootstrap.DEPLOY / f"ansible/roles/packages/vars/systems/{name}.yml"
    return dict(yaml.safe_load(file.read_text()))


def minimal(suite: str = SUITE) -> Path:
    """Return the root that debootstrap makes."""
    return cached(suite, INCLUDED, lambda folder: _debootstrap(suite, folder))


def equipped(packages: Sequence[str], suite: str = SUITE) -> Path:
    """Return such a root with more packages, of which only the way in by ssh is switched on."""
    wanted = sorted({"openssh-server", "systemd", *packages})

    def make(folder: Path) -> None:
        copy(minimal(suite), folder / "root")
        install(folder / "root", wanted)
        switch_off(folder / "root")

    return cached(f"{suite}-with", [*INCLUDED, *wanted], make)


def copy(root: Path, to: Path) -> None:
    """Copy a root, sharing its blocks where the file system can."""
    subprocess.run(["/bin/cp", "-a", "--reflink=auto", str(root), str(to)], check=True, timeout=300)


def cached(name: str, content: Sequence[str], make: Callable[[Path], None]) -> Path:
    """Return the root of that content; ``make`` leaves it in ``root`` of the folder it is given."""
    made_of = " ".join(content).encode()
    root = bootstrap.CACHE / f"{name}-{hashlib.sha256(made_of).hexdigest()[:12]}"
    with bootstrap.only_one(bootstrap.CACHE, name):
        building.once(root, made_of, make)
    return root


def _debootstrap(suite: str, folder: Path) -> None:
    argv = ["/usr/sbin/debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}"]
    if suite in _UBUNTU:
        install_tools("systemd-container")
        # Debian 12 knows neither it nor Ubuntu's keys.
        maker = equipped(["debootstrap", "ubuntu-archive-keyring"], "trixie")
        argv += ["--components=main,universe", suite, "/made/root", _ARCHIVE_OF_UBUNTU]
        apt = [file for file in APT_SETTINGS if file.is_file()]
        argv = building.within(maker, argv, bound=[f"{folder}:/made"], lent=apt)
    else:
        install_tools("debootstrap")
        argv += [suite, str(folder / "root")]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=900)


def install(root: Path, packages: Sequence[str]) -> None:
    """Install packages with this machine's way to Debian's archive."""
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(_START_NOTHING)
    policy.chmod(0o755)
    lent = [Path("/etc/resolv.conf"), *APT_SETTINGS]
    for file in lent:
        (root / file.relative_to("/")).unlink(missing_ok=True)
        shutil.copy(file, root / file.relative_to("/"))
    apt = ["/usr/sbin/chroot", str(root), "/usr/bin/apt-get", "-q"]
    install = [*apt, "install", "-y", "--no-install-recommends", *packages]
    building.call([*apt, "update"], seconds=300)
    building.call(install, seconds=1500, DEBIAN_FRONTEND="noninteractive")
    building.call([*apt, "clean"], seconds=60)
    for file in (policy, *(root / one.relative_to("/") for one in lent)):
        file.unlink()


def switch_off(root: Path) -> None:
    """Let nothing start at boot but the way in."""
    units = root / "etc/systemd/system"
    for wants in _WANTS:
        for link in (units / wants).glob("*"):
            if link.name not in _KEPT:
                link.unlink()
    for name in ("systemd-networkd.service", "ssh.service"):
        link = units / "multi-user.target.wants" / name
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(f"/lib/systemd/system/{name}")
