"""What a plain job can reach and use of its node, whatever it tries."""

import json
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.instance import NODES, USERS, Instance
from tests.waiting import until

OPEN_ALL = """
import json, os, stat, sys
opened = []
for folder, _, names in os.walk(sys.argv[1]):
    for path in (os.path.join(folder, name) for name in names):
        assert stat.S_ISCHR(os.stat(path).st_mode), path
        try:
            os.close(os.open(path, os.O_RDONLY))
        except PermissionError:
            continue
        opened.append(os.stat(path).st_rdev)
print(json.dumps(opened))
"""

# Ends by itself where nothing bounds it, since it would take the machine's last process number.
FORK_WITHOUT_END = """
import os, signal, sys
children = 0
why = "nothing"
while children < int(sys.argv[1]):
    try:
        child = os.fork()
    except BlockingIOError:
        why = "refused"
        break
    if not child:
        signal.pause()
    children += 1
print("forked", children, why, flush=True)
signal.pause()
"""


def devices_folder(portal: Instance) -> Path:
    """Where the virtual GPUs are."""
    return Path(portal.settings["hub"]["state_dir"]).with_name("devices")


def test_only_root_makes_devices(portal: Instance) -> None:
    folder = devices_folder(portal)
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        assert path.stat().st_mode & 0o777 == 0o755, path


def test_a_job_opens_no_gpu_of_another_job_or_node(portal: Instance) -> None:
    argv = ["srun", f"--nodelist={NODES[0]}", "--gres=gpu:1", "--mem=100M", "/usr/bin/python3"]
    argv += ["-c", OPEN_ALL, str(devices_folder(portal))]
    opened = json.loads(portal.slurm(*argv, user=USERS[0]))
    assert len(set(opened)) == 1


@contextmanager
def bomb(portal: Instance, tries: int) -> Iterator[str]:
    """Let a job fork as often as it can; give how often that was, and what ended it."""
    said = Path(pwd.getpwnam(USERS[0]).pw_dir, "bomb")
    said.unlink(missing_ok=True)
    argv = ["sbatch", "--parsable", f"--nodelist={NODES[0]}", "--mem=3G", f"--output={said}"]
    # As from a login node without any limit, and asked for in so many words.
    script = f"#!/bin/sh\nexec /usr/bin/python3 -c '{FORK_WITHOUT_END}' {tries}\n"

    def last_word() -> str:
        # Before it, Slurm says that it does not raise the limit.
        lines = said.read_text().splitlines() if said.exists() else []
        return lines[-1] if lines and lines[-1].startswith("forked ") else ""

    job_id = portal.slurm(*argv, "--propagate=ALL", user=USERS[0], stdin=script).strip()
    try:
        yield until(last_word, seconds=120, what="it has forked")
    finally:
        portal.cancel(job_id, seconds=60)
        said.unlink(missing_ok=True)


def test_a_job_that_forks_without_end_is_bounded_and_its_neighbour_is_not(
    portal: Instance,
) -> None:
    with bomb(portal, tries=4200) as said:
        _, children, why = said.split()
        assert why == "refused"
        assert int(children) > 3000
        argv = [
            "srun",
            f"--nodelist={NODES[0]}",
            "--mem=100M",
            "/bin/sh",
            "-c",
            "echo $(echo well)",
        ]
        assert portal.slurm(*argv, user=USERS[1]).strip() == "well"
