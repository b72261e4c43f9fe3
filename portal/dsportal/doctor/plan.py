"""The plan of checks for this host, from what the deployment expects of it."""

from collections.abc import Iterator
from functools import partial

from dsportal.doctor.checks import (
    directory,
    files,
    host_names,
    images,
    kernels,
    machine,
    slurm,
    web,
)
from dsportal.doctor.expected import Expected
from dsportal.doctor.rounds import Check

_READ_THE_LOG = "look at the machine's load, and at its log"


def checks_of(expected: Expected) -> list[Check]:
    """List them in the order in which parts need each other."""
    parts = (_of_the_machine, _of_the_directory, _of_slurm, _of_sessions, _of_the_hub)
    return [check for part in parts for check in part(expected)]


def _of_the_machine(expected: Expected) -> Iterator[Check]:
    for mount in expected.mounts:
        step = f"its server does not answer: look there; umount -l {mount.path} frees what waits"
        yield Check(f"mount {mount.path}", partial(machine.mount, mount), step)
    for path in expected.disks:
        step = f"what is mounted at {path} does not answer"
        yield Check(f"disk {path}", partial(machine.disk, path), step)
    if expected.clock and expected.clock.synchronised:
        yield Check("clock", machine.kernel_clock, _READ_THE_LOG)
    if expected.clock and expected.clock.hub_url:
        beside = partial(machine.clock_beside_hub, expected.clock.hub_url)
        yield Check("clock and hub", beside, "the hub does not answer: see there")
    for host in expected.hosts:
        step = "its name servers do not answer: see /etc/resolv.conf"
        yield Check(f"name {host}", partial(machine.host_name, host), step)
    if expected.services:
        running = partial(machine.services, expected.services)
        yield Check("services", running, _READ_THE_LOG, needs_root=True)


def _of_the_directory(expected: Expected) -> Iterator[Check]:
    if expected.directory:
        for url in expected.directory.servers:
            asked = partial(directory.server, url, expected.directory)
            step = "it is stopped, or a firewall drops what is sent there"
            yield Check(f"directory {url}", asked, step, needs_root=True)
    for name in expected.groups:
        step = "the name service hangs: restart nslcd or sssd"
        yield Check(f"group {name}", partial(directory.group, name), step)


def _of_slurm(expected: Expected) -> Iterator[Check]:
    if not (cluster := expected.slurm):
        return
    step = "slurmctld does not answer: see the controller"
    if cluster.munge_socket:
        yield Check("munge", partial(slurm.munge, cluster), "munged does not answer: restart it")
    yield Check("slurmctld", partial(slurm.controller, cluster), step)
    yield Check("slurm.conf", partial(slurm.settings, cluster), step)
    for name in cluster.nodes:
        yield Check(f"node {name}", partial(slurm.node, name, cluster), step)


def _of_sessions(expected: Expected) -> Iterator[Check]:
    step = "the file system with the programs does not answer"
    if expected.modules:
        for name in expected.modules.names:
            asked = partial(kernels.module, name, expected.modules)
            yield Check(f"module {name}", asked, step, seconds=30)
    for kernel in expected.kernels:
        started = partial(kernels.kernel, kernel, expected.modules)
        yield Check(f"kernel {kernel.name}", started, step, seconds=30)
    for image in expected.images:
        yield Check(f"image {image.name}", partial(images.image, image), step, seconds=30)


def _of_the_hub(expected: Expected) -> Iterator[Check]:
    for certificate in expected.certificates:
        asked = partial(files.certificate, certificate)
        yield Check(f"certificate {certificate.what}", asked, _READ_THE_LOG, needs_root=True)
    for backup in expected.backups:
        asked = partial(files.backup, backup)
        step = f"what holds {backup.file} does not answer"
        yield Check(f"backup {backup.what}", asked, step, needs_root=True)
    for secret in expected.private_files:
        name = f"file {secret.path}"
        yield Check(name, partial(files.private, secret), _READ_THE_LOG, needs_root=True)
    if expected.sudo:
        rule = partial(files.sudo, expected.sudo)
        yield Check("sudo", rule, "the name service hangs: restart nslcd or sssd", needs_root=True)
    if hub := expected.hub:
        step = "proxy or hub hang: restart them, and read the end of hub.log"
        if hub.is_encrypted or hub.subdomain_host:
            names = partial(host_names.of_users, hub)
            yield Check("host names", names, "its name servers do not answer: see /etc/resolv.conf")
        asked = partial(files.settings, hub)
        yield Check("portal.toml", asked, _READ_THE_LOG, needs_root=True, seconds=30)
        yield Check("hub", partial(web.hub, hub), step)
        yield Check("database", partial(web.database, hub), step, needs_root=True)
        yield Check("proxy", partial(web.proxy_api, hub), step)
