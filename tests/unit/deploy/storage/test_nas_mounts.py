"""The NAS's mounts with FS-Cache: what the role writes, refuses and looks for.

Nothing is mounted here, and no cache is kept: it has not been tried on a real NAS.
"""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests import roles
from tests.debian import roots

ROLE = roles.ROLES / "nas_mounts"
CHECK = roles.loaded(ROLE / "files/check_mounts.py")
# As Debian 12's package has them (cachefilesd 0.10.10), without their longer comments.
SETTINGS = "dir /var/cache/fscache\ntag mycache\nbrun 10%\nbcull 7%\nbstop 3%\n"
SWITCH = '#RUN=yes\n\n# Additional options that are passed to the Daemon.\nDAEMON_OPTS=""\n'
# Of each host its own: a host's units are known by them.
ADDRESS = "{{ inventory_hostname }}.example.org"
ADDRESSES = ["{{ inventory_hostname }}-1.example.org", "{{ inventory_hostname }}-2.example.org"]
HOSTS: dict[str, dict[str, object]] = {
    "usual": {},
    "cached": {"nas_mounts_fs_cache": True},
    "elsewhere": {"nas_mounts_fs_cache": True, "nas_mounts_fs_cache_folder": "/scratch/fs-cache"},
    "nothing": {"nas_mounts_fs_cache": True, "nas_mounts_data_addresses": []},
    "theirs": {"nas_mounts_fs_cache": True, "nas_mounts_made_here": False},
    "relative": {"nas_mounts_fs_cache": True, "nas_mounts_fs_cache_folder": "fscache 2"},
}
REFUSED = {"nothing", "theirs", "relative"}
# Where the kernel would write fsc (fs/nfs/super.c).
MOUNTED = (
    "62 24 0:52 / /mnt/somebody\vs rw - fuse.x\v a\vb rw,user_id=1002\n"
    "63 24 0:53 / /mnt/isilon1 rw,relatime - nfs 10.2.0.11:/ifs/data rw,vers=3,soft,nolock,"
    "proto=tcp,{more}local_lock=all,addr=10.2.0.11"
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run says that changes nothing: of all hosts, to start Ansible once."""
    folder = tmp_path_factory.mktemp("nas")
    (folder / "settings").write_text(SETTINGS)
    (folder / "switch").write_text(SWITCH)
    # In the place of the role that installs them.
    stand_in = folder / "roles/packages/tasks/main.yml"
    stand_in.parent.mkdir(parents=True)
    installs = {"debug": {"msg": "installs {{ packages_names | join(' ') }}"}}
    stand_in.write_text(yaml.safe_dump([installs]))
    facts: dict[str, object] = {
        "os_family": "Debian",
        "packages_of": roots.system("debian-12")["packages_of"],
        "instance_has_systemd": True,
        # In the place of what the role says.
        "nas_mounts_fs_cache_settings": str(folder / "settings"),
        "nas_mounts_fs_cache_switch": str(folder / "switch"),
        "nas_mounts_units": str(folder),
        "cacheable": True,
    }
    given = {"nas_mounts_address": ADDRESS, "nas_mounts_data_addresses": ADDRESSES}
    tasks = [
        {"set_fact": facts},
        {"include_role": {"name": "nas_mounts", "tasks_from": "validate"}},
        {"include_role": {"name": "nas_mounts", "tasks_from": "prepare"}},
    ]
    return roles.played(folder, HOSTS, given, tasks, "--check", "--diff")


def done(said: str, task: str) -> str:
    """Return what a task said, of all hosts."""
    found = re.search(
        rf"^TASK \[nas_mounts : {re.escape(task)}\] \*+\n(.*?)(?=^TASK )",
        said + "TASK ",
        re.M | re.S,
    )
    return found[1] if found else ""


def options(said: str, host: str, folder: str) -> set[str]:
    """Return the options in the unit that a host would get."""
    # By its address: hosts run side by side, so an answer does not follow what its host wrote.
    (found,) = re.findall(
        rf"\+What={host}[\w.-]*:.*\n\+Where={folder}\n\+Type=nfs\n(?:\+Options=(\S+)\n)?", said
    )
    return set(found.split(","))


def test_data_mounts_alone_have_the_option_and_only_where_it_is_asked_for(said: str) -> None:
    units = done(said, "Each mount has a unit")
    usual = yaml.safe_load((ROLE / "defaults/main.yml").read_text())["nas_mounts_data_options"]
    for number in range(1, len(ADDRESSES) + 1):
        assert options(units, "usual", f"/mnt/isilon{number}") == {*usual}
        assert options(units, "cached", f"/mnt/isilon{number}") == {*usual, "fsc"}
    assert options(units, "cached", "/mnt/isilon") == {""}


def test_what_keeps_the_cache_is_set_up_only_where_it_is_asked_for(said: str) -> None:
    installed = re.findall(r"^ok: \[(\w+)\] => \n +msg: installs (.*)", said, re.M)
    assert sorted(installed) == [
        ("cached", "cachefilesd"),
        ("cached", "nfs-common quota"),
        ("elsewhere", "cachefilesd"),
        ("elsewhere", "nfs-common quota"),
        ("usual", "nfs-common quota"),
    ]
    switched = done(said, "The cache may be started")
    assert set(re.findall(r"^changed: \[(\w+)\]", switched, re.M)) == {"cached", "elsewhere"}
    assert switched.count("-#RUN=yes\n+RUN=yes\n") == 2
    folder = done(said, "The cache is in that folder")
    states = {(host, state) for state, host in re.findall(r"^(\w+): \[(\w+)\]", folder, re.M)}
    assert states == {("cached", "ok"), ("elsewhere", "changed")}
    assert "-dir /var/cache/fscache\n+dir /scratch/fs-cache\n tag mycache\n" in folder


def test_what_cannot_work_is_refused_before_anything_changes(said: str) -> None:
    refused = {host: " ".join(words.split()) for host, words in roles.refusals(said).items()}
    assert refused.keys() == REFUSED
    for host in ("nothing", "theirs"):
        assert "nas_mounts_data_addresses, or set nas_mounts_fs_cache to false" in refused[host]
        assert "the option fsc, and the host cachefilesd" in refused[host]
    assert "nas_mounts_fs_cache_folder is fscache 2; it must be an absolute" in refused["relative"]


@pytest.mark.parametrize("has_it", [True, False])
def test_the_check_sees_whether_a_mount_has_it(has_it: bool) -> None:
    found = CHECK.options_of("/mnt/isilon1", MOUNTED.format(more="fsc," if has_it else ""))
    assert ("fsc" in found) == has_it


def test_the_check_sees_whether_the_daemon_runs(tmp_path: Path) -> None:
    # In the place of the daemon, which only works on a kernel with its module.
    daemon = shutil.copy("/bin/sleep", tmp_path / "cache-keeper")
    assert not CHECK.runs("cache-keeper")
    process = subprocess.Popen([daemon, "60"])
    try:
        while Path(f"/proc/{process.pid}/comm").read_text() != "cache-keeper\n":
            time.sleep(0.01)
        assert CHECK.runs("cache-keeper")
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("more", [["fsc"], []])
def test_the_check_asks_for_the_daemon_where_mounts_want_it(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mounts = [{"folder": "/mnt/isilon1", "source": "10.2.0.11:/ifs", "options": ["vers=3", *more]}]
    given = json.dumps({"mounts": mounts, "seconds": 1})
    monkeypatch.setattr(CHECK.sys, "argv", ["check_mounts.py", given])
    monkeypatch.setattr(CHECK, "CACHE", "a-name-that-nothing-has")
    monkeypatch.setattr(CHECK, "check", lambda *_: [])
    assert CHECK.main() == (1 if more else 0)
    assert ("a-name-that-nothing-has does not run" in capsys.readouterr().out) == bool(more)
