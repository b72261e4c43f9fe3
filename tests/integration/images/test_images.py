"""Images from a registry: pulled by users, into their own folder and into everybody's cache."""

import base64
import contextlib
import json
import os
import platform
import pwd
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from dsportal.settings.containers import ContainerSettings, ImageSettings
from tests.instance import FOLDER_NAME, PREFIX, ROOT, SETTINGS, USERS, Instance
from tests.pages import how_to
from tests.servers import registry as registries
from tests.servers.registry import KEY, USER, Registry
from tests.visitor import Visitor, session_of
from tests.waiting import until

COMMAND = f"/usr/local/bin/portal-{PREFIX}"
CACHE_PROGRAM = f"/usr/local/libexec/{FOLDER_NAME}/image-cache"
ACCOUNT = f"portal-{PREFIX}-images"
NOTEBOOK = ROOT / "notebook_templates/containers/registry.ipynb"
HERE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
SMALL, LARGE = 200_000, 3_000_000
FEW = 60_000
"""Bytes of each answer that come through a half closed gate: all but layers."""


@pytest.fixture(scope="module")
def site(portal: Instance) -> dict[str, str]:
    """What the deployment has decided."""
    decided = json.loads((SETTINGS.parent / "images.json").read_text())
    return {**decided, "shared": decided["shared"][0]}


@pytest.fixture(scope="module")
def registry(site: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry where the site expects one, with an image for everybody and one that is not."""
    port = int(site["shared"].partition("/")[0].rpartition(":")[2])
    with registries.running(tmp_path_factory.mktemp("registry"), port) as running:
        running.push("private/shell:1.0", registries.shell())
        yield running


@pytest.fixture(autouse=True)
def nothing_pulled(site: dict[str, str]) -> Iterator[None]:
    """No image is left where tests put some, and nobody who would put one."""
    yield
    until(
        lambda: (
            not any(
                b"images.pyz" in text or b"image-cache" in text for text in of_processes("cmdline")
            )
        ),
        seconds=60,
        what="nobody pulls",
    )
    folders = [Path(site["cache"]), *(home(user) / "images" for user in USERS[:2])]
    for folder in folders:
        subprocess.run(
            ["/bin/rm", "-rf", *map(str, folder.glob("*")), *map(str, folder.glob(".[!.]*"))],
            check=True,
        )


def of_processes(name: str) -> list[bytes]:
    """Return command lines or environments of all that runs."""
    found = []
    for file in Path("/proc").glob(f"[0-9]*/{name}"):
        with contextlib.suppress(OSError):
            found.append(file.read_bytes())
    return found


def home(user: str) -> Path:
    return Path(pwd.getpwnam(user).pw_dir)


def as_user(user: str, *argv: str) -> list[str]:
    clean = [
        "/usr/bin/env",
        "-i",
        "--default-signal=INT",
        f"HOME={home(user)}",
        "PATH=/usr/bin:/bin",
    ]
    return ["/usr/sbin/runuser", "-u", user, "--", *clean, *argv]


def pull(user: str, *arguments: str, key: str | None = KEY) -> tuple[int, str, str]:
    """Run the command; return status, what it printed and what it complained of."""
    argv = as_user(user, COMMAND, "image", "pull", *([] if key is None else ["--key-stdin"]))
    done = subprocess.run(
        [*argv, *arguments],
        input=key or "",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def pulling(user: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Have the command run."""
    argv = as_user(user, COMMAND, "image", "pull", "--key-stdin", *arguments)
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdin
        child.stdin.write(KEY)
        child.stdin.close()
        child.stdin = None
        try:
            yield child
        finally:
            child.kill()


def wait_for_words(child: subprocess.Popen[str], words: str) -> None:
    """Wait until a command has said this on its standard error."""
    assert child.stderr
    descriptor, said = child.stderr.fileno(), bytearray()
    os.set_blocking(descriptor, False)

    def has_said() -> bool:
        with contextlib.suppress(BlockingIOError):
            said.extend(os.read(descriptor, 4096))
        return words.encode() in said

    until(has_said, seconds=30, what=f"it says {words!r}")


def run_in(site: dict[str, str], user: str, image: str, *command: str) -> str:
    argv = as_user(user, site["apptainer"], "exec", image, *command)
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


def halves_in(folder: Path) -> set[Path]:
    return set(folder.glob(".partial/*/layout/oci-put-blob*"))


def layers_in(folder: Path) -> set[str]:
    return {f"sha256:{blob.name}" for blob in folder.glob(".partial/*/layout/blobs/sha256/*")}


def test_an_image_runs_and_its_digest_is_shown_and_kept(
    site: dict[str, str], registry: Registry
) -> None:
    name = f"{registry.host}/private/shell:1.0"
    status, said, progress = pull(USERS[0], name)
    assert status == 0, progress
    path, digest = said.split()
    assert Path(path).parent == home(USERS[0]) / "images"
    assert Path(path).owner() == USERS[0]
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    assert f"{name} is {digest}" in progress
    assert run_in(site, USERS[0], path, "echo", "hello").strip() == "hello"
    argv = as_user(USERS[0], COMMAND, "image", "list")
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert path in listed
    assert digest in listed
    assert not layers_in(Path(path).parent)


def test_of_an_image_for_several_kinds_of_machines_this_ones_is_pulled(
    site: dict[str, str], registry: Registry
) -> None:
    registry.push("private/several:here", registries.shell())
    registry.push("private/several:elsewhere", registries.noise(SMALL))
    of = {"s390x": "elsewhere", HERE: "here"}
    digest = registry.push_list("private/several:1", of)
    status, said, complaint = pull(USERS[0], f"{registry.host}/private/several:1")
    assert status == 0, complaint
    assert said.split()[1] == digest
    assert run_in(site, USERS[0], said.split()[0], "echo", "here").strip() == "here"


def test_an_interrupted_pull_goes_on_where_it_was(registry: Registry) -> None:
    layers = registries.noise(SMALL), registries.noise(LARGE)
    small, large = registry.push("private/layers:1", *layers)
    name, folder = f"{registry.host}/private/layers:1", home(USERS[0]) / "images"
    with registry.gate.half_closed(SMALL + FEW):
        for how in (signal.SIGINT, signal.SIGKILL):
            before = halves_in(folder)
            with pulling(USERS[0], name) as child:
                until(partial(_one_is_there, folder, small, before), seconds=30, what="layers come")
                _signal_command(child.pid, how)
                child.communicate(timeout=30)
            assert not list(folder.glob("*.sif"))
        # Once the gate is open, a skopeo whose command was killed may still fetch the rest.
        assert large not in layers_in(folder)
    status, _, complaint = pull(USERS[0], name)
    assert status == 0, complaint
    assert registry.times_asked_for(small) == 1


def _one_is_there(folder: Path, layer: str, before: set[Path]) -> bool:
    """Tell whether a layer is there, and another one arrives that did not before."""
    return layer in layers_in(folder) and bool(halves_in(folder) - before)


def _signal_command(runuser: int, number: int) -> None:
    """Send a signal to the command that runuser has started."""
    children = Path(f"/proc/{runuser}/task/{runuser}/children").read_text().split()
    os.kill(int(children[0]), number)


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("private/shell:1.0", None, "to nobody without a key"),
        ("private/shell:1.0", "nvapi-wrong", "refuses the key of $oauthtoken"),
        ("private/shell:9", KEY, "has no image"),
        ("private/nothing:1", KEY, "has no image"),
        ("shared/nothing:1", KEY, "has no image"),
        ("shared/nothing:1", "nvapi-wrong", "refuses the key of $oauthtoken"),
    ],
)
def test_what_cannot_be_pulled_is_said_in_words(
    registry: Registry, name: str, key: str | None, words: str
) -> None:
    status, said, complaint = pull(USERS[0], f"{registry.host}/{name}", key=key)
    assert (status, said) == (1, "")
    assert words in complaint
    assert "Traceback" not in complaint
    assert len(complaint.splitlines()) == 1


def test_the_key_is_in_no_command_variable_or_file(
    site: dict[str, str], registry: Registry
) -> None:
    registry.push("shared/large:1", registries.noise(LARGE))
    registry.push("private/large:1", registries.noise(LARGE))
    folders = {"private": home(USERS[0]) / "images", "shared": Path(site["cache"])}
    for kind, folder in folders.items():
        with registry.gate.half_closed(FEW), pulling(USERS[0], f"{registry.host}/{kind}/large:1"):
            until(partial(halves_in, folder), seconds=30, what="a layer arrives")
            told = of_processes("cmdline") + of_processes("environ")
            assert any(b"skopeo" in text for text in told)
            assert not any(KEY.encode() in text for text in told)
            written = [*folder.rglob("*"), *home(USERS[0]).rglob("*"), *files_of_pullers()]
            assert written
            assert not [file for file in written if file.is_file() and holds_the_key(file)]


def files_of_pullers() -> list[Path]:
    """Return what those who pull have put where everybody may."""
    find = ["/usr/bin/find", "/tmp", "/dev/shm", "/run", "-maxdepth", "2", "-type", "f"]  # noqa: S108
    find += ["(", "-user", USERS[0], "-o", "-user", ACCOUNT, ")"]
    found = subprocess.run(find, capture_output=True, text=True, timeout=30, check=False)
    return [Path(line) for line in found.stdout.splitlines()]


def holds_the_key(file: Path) -> bool:
    content = file.read_bytes()
    pair = base64.b64encode(f"{USER}:{KEY}".encode())
    return KEY.encode() in content or pair in content


def test_two_users_at_once_pull_an_image_once(site: dict[str, str], registry: Registry) -> None:
    shell = registries.shell() | registries.noise(SMALL)
    layers = registry.push("shared/both:1", registries.noise(LARGE), shell)
    name = f"{registry.host}/shared/both:1"
    with registry.gate.half_closed(FEW), pulling(USERS[0], name) as first:
        wait_for_words(first, "is sha256:")
        until(lambda: list(Path(site["cache"]).glob(".partial/*")), seconds=30, what="it begins")
        with pulling(USERS[1], name) as second:
            wait_for_words(second, "Somebody else is pulling")
            registry.gate.open()
            paths = [child.communicate(timeout=60)[0].split()[0] for child in (first, second)]
    assert paths[0] == paths[1]
    assert [registry.times_asked_for(layer) for layer in layers] == [1, 1]
    assert Path(paths[0]).owner() == ACCOUNT
    assert run_in(site, USERS[1], paths[0], "id", "-u").strip() == str(
        pwd.getpwnam(USERS[1]).pw_uid
    )


def test_an_image_in_the_settings_by_its_name_is_the_one_that_was_pulled(
    site: dict[str, str], registry: Registry
) -> None:
    name = f"{registry.host}/shared/named:1.0"
    settings = ContainerSettings(
        apptainer="/usr/bin/apptainer",
        cache=site["cache"],
        images={"named": ImageSettings(title="Named", address=name)},
    )
    file = Path(settings.file_of(settings.images["named"]))
    files = []
    for content in (registries.shell(), registries.noise(SMALL)):
        registry.push("shared/named:1.0", content)
        status, said, complaint = pull(USERS[0], name)
        assert status == 0, complaint
        files.append(said.split()[0])
        # The name leads to what it was last pulled as.
        assert str(file.resolve()) == files[-1]
    assert files[0] != files[1]


def test_no_user_can_change_the_cache_but_by_its_program(
    site: dict[str, str], registry: Registry
) -> None:
    registry.push("shared/shell:1.0", registries.shell())
    status, said, complaint = pull(USERS[0], f"{registry.host}/shared/shell:1.0")
    assert status == 0, complaint
    image = said.split()[0]
    for argv in (
        ["/bin/touch", f"{site['cache']}/mine.sif"],
        ["/bin/ln", "-sfn", "/etc/passwd", f"{site['cache']}/by-name/mine@1.sif"],
        ["/bin/mv", image, f"{image}.old"],
        ["/bin/sh", "-c", f"echo poison >> {image}"],
        ["/bin/ls", f"{site['cache']}/.partial"],
        ["/usr/bin/sudo", "-n", "-u", ACCOUNT, "/bin/sh", "-c", "id"],
        ["/usr/bin/sudo", "-n", "-u", ACCOUNT, CACHE_PROGRAM, "--site=/tmp/mine"],
        ["/usr/bin/sudo", "-n", "-u", ACCOUNT, "PYTHONPATH=/tmp", CACHE_PROGRAM],
        ["/usr/bin/sudo", "-n", CACHE_PROGRAM],
    ):
        done = subprocess.run(
            as_user(USERS[0], *argv), capture_output=True, timeout=30, check=False
        )
        assert done.returncode != 0, argv


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"reference": "{host}/private/shell:1.0", "key": None}, "does not share"),
        ({"reference": "{host}/sharedx/shell:1.0", "key": None}, "does not share"),
        ({"reference": "{host}/shared/../private/shell:1.0", "key": None}, "is no image's name"),
        ({"reference": "-v/shared/shell:1", "key": None}, "is no image's name"),
        ({"reference": "{host}/shared/none:1", "key": ["a\nb", "c\x1b[2J"]}, "refuses the key"),
        ({"reference": "{host}/shared/none:1", "key": 7}, "not one that this program knows"),
        ({"reference": ["{host}/shared/none:1"], "key": None}, "not one that this program knows"),
        (7, "not one that this program knows"),
    ],
)
def test_the_caches_program_takes_orders_as_if_from_an_enemy(
    site: dict[str, str], registry: Registry, order: object, words: str
) -> None:
    text = json.dumps(order).replace("{host}", registry.host)
    answer = ask_cache(["/usr/bin/sudo", "-n", "-u", ACCOUNT, CACHE_PROGRAM], text)
    assert answer.returncode != 0
    assert words in answer.stdout
    assert "Traceback" not in answer.stderr
    assert not list(Path(site["cache"]).glob("*.sif"))


def ask_cache(argv: Sequence[str], order: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        as_user(USERS[0], *argv),
        input=order,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_limits_that_a_user_sets_leave_no_half_image_for_others(
    site: dict[str, str], registry: Registry
) -> None:
    registry.push("shared/limited:1", registries.noise(LARGE))
    name = f"{registry.host}/shared/limited:1"
    order = json.dumps({"reference": name, "key": ["$oauthtoken", KEY]})
    sudo = ["/usr/bin/sudo", "-n", "-u", ACCOUNT, CACHE_PROGRAM]
    assert ask_cache(["/usr/bin/prlimit", "--fsize=1000000", *sudo], order).returncode != 0
    assert not list(Path(site["cache"]).glob("*.sif"))
    status, said, complaint = pull(USERS[1], name)
    assert status == 0, complaint
    assert Path(said.split()[0]).stat().st_size > LARGE


def test_a_full_disk_is_said_and_what_has_arrived_is_kept(registry: Registry) -> None:
    folder = home(USERS[0]) / "images"
    layer, zeros = registry.push(
        "private/wide:1", registries.shell(), {"data/zeros": bytes(30_000_000)}
    )
    subprocess.run(as_user(USERS[0], "/bin/mkdir", "-p", str(folder)), check=True)
    owner = pwd.getpwnam(USERS[0]).pw_uid
    mount = [
        "/bin/mount",
        "-t",
        "tmpfs",
        "-o",
        f"size=10m,mode=755,uid={owner}",
        "tmpfs",
        str(folder),
    ]
    subprocess.run(mount, check=True, timeout=10)
    try:
        status, _, complaint = pull(USERS[0], f"{registry.host}/private/wide:1")
        assert status == 1
        assert "is full: no room" in complaint
        assert {layer, zeros} <= layers_in(folder)
        registry.push("private/long:1", registries.noise(8_000_000))
        status, _, complaint = pull(USERS[0], f"{registry.host}/private/long:1")
        assert status == 1
        assert "GB free, and this image needs" in complaint
    finally:
        subprocess.run(["/bin/umount", str(folder)], check=True, timeout=10)


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    """A user with a session."""
    with session_of(portal, USERS[0]) as user:
        yield user


def test_a_terminal_asks_for_the_key_and_does_not_show_it(
    user: Visitor, registry: Registry
) -> None:
    words = {
        "portal image": f"portal-{PREFIX} image",
        "nvcr.io/nvidia/pytorch:24.05-py3": f"{registry.host}/private/shell:1.0",
    }
    line = how_to("pull-images.md", 0, words)
    answers = {"(not shown)": f"{KEY}\r"}
    screen = user.type_in_terminal(f"{line} && echo do''ne", "done", answers=answers, seconds=60)
    assert KEY not in screen
    assert list((home(USERS[0]) / "images").glob("shell-1.0-*.sif"))


def test_the_notebook_pulls_with_a_key_from_a_file(
    site: dict[str, str], user: Visitor, registry: Registry
) -> None:
    registry.push("shared/notebook:1", registries.shell())
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    parameters, *rest = ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]
    chosen = {
        "image": f"{registry.host}/shared/notebook:1",
        "key_file": "~/registry.key",
        "command": f"portal-{PREFIX}",
    }
    key = home(USERS[0]) / "registry.key"
    make = f"umask 077; echo {KEY} > {key}"
    subprocess.run(as_user(USERS[0], "/bin/sh", "-c", make), check=True, timeout=10)
    values = "".join(f"{name} = {value!r}\n" for name, value in chosen.items())
    printed = user.run("\n".join([parameters, values, *rest]), seconds=120)
    key.unlink()
    assert f"image  {site['cache']}/notebook-1-" in printed
    assert "digest sha256:" in printed
    assert KEY not in printed
