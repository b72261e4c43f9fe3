"""A site of three hosts on this machine: a head, and two compute nodes; or of five.

The other two are those that may run the hub of a portal beside a Slurm that is there already.

Each is a machine of its own (`tests.debian.machines`) with a Debian, on one bridge, deployed over
ssh from a copy of ``inventories/example``, or of ``inventories/attach`` where a Slurm is there
already.
What is *not* as on a site, and why:

- The hosts have no way to the internet, so packages are in their roots before the deployment, and
  switched off; environments that its Python has made are lent to the head, which finds them by
  their hash.
- This machine's kernel has no NFS. In its place the compute hosts get bind mounts of the head's
  homes and applications. The NAS is three mounts of the layout that role nas_mounts makes
  (``isilon``, ``isilon1``, ``isilon2``), each of which a FUSE program of its own answers for; the
  role's own mounts are proved in ``tests/deploy/test_nfs.py``.
- GPUs are character devices of the kernel's unused text consoles.

By hand: ``python -m tests.debian.hosts up | down | deploy [ARGUMENT...] | run HOST COMMAND...``.
"""

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bootstrap
import yaml

from tests import images
from tests.debian import machines, roots, software
from tests.debian.environments import TOOLS, Environments
from tests.debian.environments import made as environments_of
from tests.debian.machines import Enclosure, Machine
from tests.instance import ROOT
from tests.servers import directories
from tests.waiting import until

NAMES = ("head", "compute1", "compute2")
PORTALS = ("portal1", "portal2")
ADDRESSES = {
    "head": "10.77.0.10",
    "compute1": "10.77.0.11",
    "compute2": "10.77.0.12",
    "portal1": "10.77.0.13",
    "portal2": "10.77.0.14",
}
MOVING = "10.77.0.40"
"""The address of the machine whose hub runs, where several may run it."""
DIRECTORIES = ("10.77.0.21", "10.77.0.22")
OURS = "10.77.0.254"
"""Where we are in the hosts' network: a browser, an administrator with Ansible."""
DOMAIN = "portal.site.test"
"""The portal's name, below which each user has one."""
# What an administrator sets in the place of the inventories' values.
_LINE = "        portal1: {{ansible_host: {}}}\n"
_ONE_PORTAL = {_LINE.format("192.0.2.10"): "        head: {ansible_host: 10.77.0.10}\n"}
# Whose settings a site has: folders of tests/site/inventory.
_OF_TESTS = {
    "example": ("both", "example"),
    "attach": ("both", "attach", "software"),
    "standby": ("both", "attach", "standby"),
}
# A site with modules of its own leaves these out.
_OWN_MODULES = {
    "modules: {children: {head_node: {}, compute_nodes: {}}}": "modules: {hosts: {}}",
}
_TWO_PORTALS = {
    _LINE.format("192.0.2.10"): "".join(
        f"        {name}: {{ansible_host: {ADDRESSES[name]}}}\n" for name in PORTALS
    ),
    "virtual_address: {hosts: {}}": "virtual_address: {children: {head_node: {}}}",
}
_SET = {
    "192.0.2.": "10.77.0.",
    "ldap.example.org": DIRECTORIES[0],
    "directory1.example.org": DIRECTORIES[0],
    "directory2.example.org": DIRECTORIES[1],
    "dc=example,dc=org": directories.BASE,
    "nas.example.org": "10.77.0.30",
    "portal.example.org": DOMAIN,
    "mpi: {hosts: {}}": "mpi: {children: {compute_nodes: {}}}",
}

_SITE = Path("/srv")
"""A file system in memory, in the enclosure: all that the hosts write."""
# Named after the clone: deployments of one inventory wait for each other, by its path.
INVENTORY = _SITE / f"inventory-of-{ROOT.name}"
_KEY = _SITE / "key"
AUTHORITY = _SITE / "directory/ca.pem"
"""Who has signed the certificates of the directories and of the portal."""
_LENT_ENVIRONMENTS = _SITE / "portal/environments"
NAS = ("isilon", "isilon1", "isilon2")
"""The NAS's mounts, below /mnt."""
_PID_FILE = Path(f"/run/data-scientist-portal-hosts-{ROOT.name}.pid")

_REMOVE = """
import sys
import bootstrap
sys.exit(bootstrap.play("remove.yml", sys.argv[1], sys.argv[2:]))
"""
# What is not part of this site.
_OTHERS = (
    *("test_tools", "directory"),
    *("environments_vscode", "environments_horovod", "environments_python2"),
    *roots.HARDWARE,
)

_NO_SOURCES = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "node_modules")
_LINK = "[Match]\nName=host0\n[Network]\nAddress={address}/24\nLinkLocalAddressing=no\n"


@dataclass(frozen=True)
class Hosts:
    """The three, in their enclosure."""

    enclosure: Enclosure
    head: Machine
    compute1: Machine
    compute2: Machine
    directories: tuple[subprocess.Popen[bytes], ...]
    """The servers that know the people, in the order in which they are asked."""
    nas: dict[str, subprocess.Popen[bytes]]
    """What answers for each mount of the NAS."""
    environments: Environments
    portals: tuple[Machine, ...] = ()

    def all(self) -> tuple[Machine, ...]:
        return (self.head, self.compute1, self.compute2, *self.portals)

    def deploy(self, *arguments: str, sources: Path = ROOT, inventory: Path = INVENTORY) -> str:
        """Run ``deploy/up`` over ssh, as an administrator would; return what it printed."""
        return self.enclosure.run(sources / "deploy/up", inventory, *arguments, seconds=900)

    def remove(self) -> str:
        """Do as ``deploy/remove --delete-data``, but for its end: the cache is this machine's."""
        wanted = '--extra-vars={"instance_keep": false, "instance_keep_data": false}'
        argv = ("/usr/bin/python3", "-c", _REMOVE, INVENTORY, wanted)
        return self.enclosure.run(*argv, seconds=600, PYTHONPATH=str(bootstrap.DEPLOY))

    def upgrade(self) -> Path:
        """Return changed sources, whose environments the head has."""
        sources = _SITE / "upgrade"
        shutil.copytree(ROOT, self.enclosure.path(sources), ignore=_NO_SOURCES)
        with self.enclosure.path(sources / "portal/dsportal/__init__.py").open("a") as code:
            code.write("# The next release.\n")
        self.environments.make_in(self.enclosure, sources, _LENT_ENVIRONMENTS, "hub", "session")
        return sources

    def tell(self, server: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """Send a signal to one of the servers beside the hosts."""
        (pid,) = machines.children(server.pid)
        os.kill(pid, number)

    def plug(self, name: str, state: str) -> None:
        """Put a host's network cable in (``up``) or pull it out (``down``)."""
        self.enclosure.run("/sbin/ip", "link", "set", f"vb-{name}", state)


def packages(suite: str) -> list[str]:
    """Return what the roles of a site install on a Debian, by their own list."""
    by_role = roots.system(roots.SYSTEMS[suite])["packages_of"]
    wanted = {name for role, names in by_role.items() if role not in _OTHERS for name in names}
    return sorted({"postgresql", *wanted, *bootstrap.SYSTEM_PACKAGES})


def _names(suite: str) -> list[str]:
    """Return the environments that the head asks for."""
    file = bootstrap.DEPLOY / "ansible/roles/environments/defaults/main.yml"
    names = yaml.safe_load(file.read_text())
    lacking = roots.system(roots.SYSTEMS[suite])["packages_lacking_environments"]
    wanted = [*names["environments_names"], *names["environments_kernels"]]
    return [name for name in wanted if name not in lacking]


@dataclass(frozen=True)
class Prepared:
    """What the hosts of one Debian are lent, since they cannot reach the internet."""

    base: Path
    """The root file system that they start from."""
    environments: Environments
    software: Path
    """What the tool of a site that attaches the portal has installed."""


@functools.cache
def prepared(suite: str) -> Prepared:
    """Fetch and make what hosts of a Debian are lent, while we are still in our own network."""
    tools = ("systemd-container", "openssh-client", "bindfs", "dnsmasq-base")
    roots.install_tools(*tools, "slapd", "ldap-utils")
    base = roots.equipped(packages(suite), suite)
    environments = environments_of(suite, base, _names(suite))
    images.pack()
    return Prepared(base, environments, software.installed(base))


@contextmanager
def booted(inventory: str = "example", suite: str = roots.SUITE) -> Iterator[Hosts]:
    """Boot the hosts; all is gone at the end, or when this process dies."""
    with machines.enclosure() as enclosure:
        yield boot(enclosure, inventory, suite)


def boot(enclosure: Enclosure, inventory: str = "example", suite: str = roots.SUITE) -> Hosts:
    """Boot the hosts in an enclosure that is new, to be deployed from a copy of an inventory.

    ``standby``: five, from ``attach``; else three.
    """
    names = NAMES + (PORTALS if inventory == "standby" else ())
    made = prepared(suite)
    environments = made.environments
    _furnish(enclosure, environments)
    if inventory == "attach":
        _lend(enclosure, made.software, _SITE / "sw")
    nas = _serve_nas(enclosure)
    servers = tuple(directories.serve(enclosure, _SITE / "directory", each) for each in DIRECTORIES)
    _make_certificate(enclosure)
    _serve_names(enclosure, MOVING if inventory == "standby" else ADDRESSES["head"])
    head, compute1, compute2, *portals = (
        _machine(enclosure, name, made.base, environments) for name in names
    )
    hosts = Hosts(enclosure, head, compute1, compute2, servers, nas, environments, tuple(portals))
    for machine in hosts.all():
        machine.power_on()
    for machine in hosts.all():
        machine.wait_until_up()
    for number, machine in enumerate((hosts.compute1, hosts.compute2)):
        _add_gpus(machine, first_minor=20 + 4 * number)
    write_inventory(enclosure, inventory)
    _know_hosts(enclosure, names)
    return hosts


def _furnish(enclosure: Enclosure, environments: Environments) -> None:
    """Make the network, and what the hosts share."""
    enclosure.run("/bin/mount", "-t", "tmpfs", "-o", "mode=755", "hosts", str(_SITE))
    ip = ("/sbin/ip", "link")
    enclosure.run(*ip, "set", "lo", "up")
    enclosure.run(*ip, "add", "br0", "type", "bridge")
    enclosure.run("/sbin/ip", "address", "add", f"{OURS}/24", "dev", "br0")
    enclosure.run(*ip, "set", "br0", "up")
    for folder in ("home", "portal", "shared", "sw", *NAS):
        enclosure.path(_SITE / folder).mkdir()
    enclosure.run("/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", _KEY)
    _lend(enclosure, environments.folder, _LENT_ENVIRONMENTS)


def _serve_nas(enclosure: Enclosure) -> dict[str, subprocess.Popen[bytes]]:
    """Serve one folder by a program for each mount: when that is stopped, who asks must wait."""
    behind = _SITE / "nas-disk"
    enclosure.path(behind).mkdir()
    for name in directories.PEOPLE:
        own = enclosure.path(behind / name)
        own.mkdir()
        os.chown(own, *directories.numbers(name))
    bind = ("/usr/bin/bindfs", "-f", "-o", "allow_other", behind)
    servers = {name: enclosure.start(*bind, _SITE / name) for name in NAS}
    answering = [enclosure.path(_SITE / name / "user1") for name in NAS]
    until(lambda: all(map(Path.exists, answering)), seconds=10, what="the NAS answers")
    return servers


def _make_certificate(enclosure: Enclosure) -> None:
    """Make the portal's, signed by the site's authority."""
    signer = ("-CA", str(AUTHORITY), "-CAkey", str(AUTHORITY.with_suffix(".key")))
    name = (directories.NO_AUTHORITY, f"subjectAltName=DNS:{DOMAIN},DNS:*.{DOMAIN}")
    directories.make_certificate(enclosure, _SITE / "portal-tls", "/CN=head", name, *signer)


def _serve_names(enclosure: Enclosure, address: str) -> None:
    """Know the portal's name and all below it, as a site's name service does, and no others."""
    quiet = ("--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts")
    here = (f"--listen-address={OURS}", "--bind-interfaces", "--user=root", "--pid-file=")
    enclosure.start("/usr/sbin/dnsmasq", *quiet, *here, f"--address=/{DOMAIN}/{address}")


def _lend(enclosure: Enclosure, folder: Path, to: Path) -> None:
    """Let a folder of this machine be seen by the hosts."""
    enclosure.lend(folder, to, _SITE / f"written-{to.name}-{to.parent.name}")


def _machine(enclosure: Enclosure, name: str, base: Path, environments: Environments) -> Machine:
    root = _SITE / name
    _furnish_root(enclosure, root, base)
    shared = [f"--bind={_SITE}/home:/home", f"--bind={_SITE}/portal:/opt/data-scientist-portal"]
    shared += [f"--bind={_SITE}/{mount}:/mnt/{mount}" for mount in NAS]
    shared.append(f"--bind-ro={_SITE}/sw:{software.FOLDER}")
    if name in PORTALS:
        shared.append(f"--bind={_SITE}/shared:/mnt/shared")
    if name in ("head", *PORTALS):
        _lend(enclosure, environments.tools, _SITE / f"cache-{name}")
        shared.append(f"--bind={_SITE}/cache-{name}:{TOOLS}")
    return Machine(enclosure, name, root, ("--network-bridge=br0", *shared))


def _furnish_root(enclosure: Enclosure, root: Path, base: Path) -> None:
    """Make what an administrator has installed before Ansible comes."""
    _lend(enclosure, base, root)
    name, files = root.name, enclosure.path(root)
    (files / "etc/hostname").write_text(f"{name}\n")
    (files / "etc/machine-id").unlink(missing_ok=True)
    (files / "etc/machine-id").write_text(f"{list(ADDRESSES).index(name):032x}"[1:] + "a\n")
    hosts = "".join(f"{address} {host}\n" for host, address in ADDRESSES.items())
    (files / "etc/hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
    (files / "etc/resolv.conf").write_text(f"nameserver {OURS}\n")
    link = files / "etc/systemd/network/10-host0.network"
    link.write_text(_LINK.format(address=ADDRESSES[name]))
    keys = files / "root/.ssh/authorized_keys"
    keys.parent.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(f"{enclosure.path(_KEY)}.pub", keys)
    shutil.copyfile(enclosure.path(AUTHORITY), files / "etc/ssl/site.pem")


def _add_gpus(machine: Machine, first_minor: int) -> None:
    for number in range(4):
        device = f"/dev/gpu{number}"
        machine.run("/bin/mknod", "-m", "666", device, "c", "4", str(first_minor + number))


def write_inventory(enclosure: Enclosure, name: str, to: Path = INVENTORY) -> None:
    """Copy the inventory, and add what only this site has."""
    folder = enclosure.path(to)
    base = "attach" if name == "standby" else name
    shutil.copytree(bootstrap.DEPLOY / "ansible/inventories" / base, folder, dirs_exist_ok=True)
    values = (_TWO_PORTALS if name == "standby" else _ONE_PORTAL) | _SET
    if name == "attach":
        values |= _OWN_MODULES
    for file in folder.rglob("*.yml"):
        text = file.read_text()
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        file.write_text(text)
    for own in _OF_TESTS[name]:
        there = ROOT / "tests/site/inventory" / own
        shutil.copytree(there, folder / "group_vars/all", dirs_exist_ok=True)


def _know_hosts(enclosure: Enclosure, names: Sequence[str]) -> None:
    """Take down the hosts' own keys, as an administrator does who has installed them."""
    known = enclosure.run(
        "/usr/bin/ssh-keyscan", "-t", "ed25519", *(ADDRESSES[name] for name in names)
    )
    enclosure.path(_SITE / "known_hosts").write_text(known)


def ssh(*argv: str) -> list[str]:
    """Say how to reach a host by ssh."""
    return ["/usr/bin/ssh", "-i", str(_KEY), "-o", f"UserKnownHostsFile={_SITE}/known_hosts", *argv]


def _by_hand(verb: str, *arguments: str) -> int:
    if verb == "up":
        enclosure = machines.hold(outlives_us=True)
        _PID_FILE.write_text(str(enclosure.holder))
        boot(enclosure)
        return 0
    enclosure = Enclosure(int(_PID_FILE.read_text()))
    if verb == "down":
        machines.end(enclosure)
        _PID_FILE.unlink()
        return 0
    if verb == "run":
        host, *command = arguments
        argv = enclosure.argv(*ssh(f"root@{ADDRESSES[host]}", *command))
    else:
        argv = enclosure.argv(ROOT / "deploy/up", INVENTORY, *arguments)
    os.execv(argv[0], argv)  # noqa: S606 - an argv list


if __name__ == "__main__":
    sys.exit(_by_hand(*sys.argv[1:]))
