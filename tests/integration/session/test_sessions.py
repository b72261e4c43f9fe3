"""Sessions as Slurm jobs: what users get, and what stands between them."""

import pwd
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.session import endings
from jupyterhub_gpu_slurm.slurm.records import Job
from tests.instance import USERS, Instance
from tests.visitor import Visitor
from tests.waiting import until

Visit = Callable[[str], Visitor]

PRINT_GPUS = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"
"""What the session sees, counted among its own GPUs."""


def open_every_gpu(folder: str) -> str:
    """Return code that tries each GPU device of a node and prints those that open."""
    return f"""
import glob, os
opened = []
paths = sorted(glob.glob("{folder}/gpu*"))
for path in paths:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))
        opened.append(path)
    except PermissionError:
        pass
print("opened", len(opened), "of", len(paths), opened)
"""


def test_a_session_has_the_gpus_cores_memory_and_time_asked_for(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    job = portal.job(user.start_and_wait(gpus=2, hours=1.5, partition="shareq"))
    assert job["UserId"].startswith(f"{USERS[0]}(")
    assert job["JobName"] == f"{portal.mark}-{USERS[0]}"
    assert job["Partition"] == "shareq"
    assert job["NumNodes"] == "1"
    assert job["TimeLimit"] == "01:30:00"
    assert (job["NumCPUs"], job["MinMemoryNode"], job["TresPerNode"]) == ("16", "96G", "gres:gpu:2")
    assert user.run(PRINT_GPUS).strip() == "0,1"


def test_two_users_share_a_node_and_get_different_gpus(portal: Instance, visit: Visit) -> None:
    first, second = visit(USERS[0]), visit(USERS[1])
    first_job = portal.job(first.start_and_wait(gpus=1))
    second_job = portal.job(second.start_and_wait(gpus=1))
    assert first_job["NodeList"] == second_job["NodeList"]
    assert gpu_index(first_job) != gpu_index(second_job)
    # Where devices are confined, Slurm counts CUDA_VISIBLE_DEVICES among those of the job.
    assert (first.run(PRINT_GPUS).strip(), second.run(PRINT_GPUS).strip()) == ("0", "0")


def gpu_index(job: dict[str, str]) -> str:
    """Return the ``IDX`` of a job's GPUs, as ``scontrol show job -d`` prints it."""
    match = re.search(r"IDX:([0-9,-]+)", job["GRES"])
    assert match, job
    return match.group(1)


def test_neither_can_open_the_others_gpu_device(portal: Instance, visit: Visit) -> None:
    devices = gpu_devices(portal)
    opened = {}
    for name in (USERS[0], USERS[1]):
        user = visit(name)
        job = portal.job(user.start_and_wait(gpus=1))
        opened[name] = user.run(open_every_gpu(devices)).strip()
        # The virtual nodes' devices are numbered as Slurm counts them.
        assert opened[name] == f"opened 1 of 4 ['{devices}/gpu{gpu_index(job)}']"
    assert opened[USERS[0]] != opened[USERS[1]]


def gpu_devices(portal: Instance) -> str:
    """Return the folder of the virtual GPUs' device files, from Slurm's own gres.conf."""
    conf = Path(portal.settings["slurm"]["config_file"]).with_name("gres.conf").read_text()
    match = re.search(r"File=(\S+)/[^/\s]+", conf)
    assert match, conf
    return match.group(1)


def test_a_session_over_its_memory_is_told_why_and_harms_nobody(
    portal: Instance, visit: Visit
) -> None:
    greedy, other = visit(USERS[0]), visit(USERS[1])
    greedy.start_and_wait(gpus=0)
    other_job = other.start_and_wait(gpus=0)
    printed = greedy.run(
        "chunks = []\nfor _ in range(40):\n    chunks.append(bytearray(b'x') * (100 << 20))\n"
        "print('not stopped')",
        seconds=120,
    )
    assert "not stopped" not in printed
    assert "memory" in printed
    assert "1.5 GiB" in printed
    assert other.run("print(6 * 7)").strip() == "42"
    assert portal.job(other_job)["JobState"] == "RUNNING"


def test_who_asks_for_more_than_is_free_waits_and_starts_when_one_stops(
    portal: Instance, visit: Visit
) -> None:
    first, second, third = visit(USERS[0]), visit(USERS[1]), visit(USERS[2])
    with portal.gpus_taken(nodes=2):
        first.start_and_wait(gpus=2)
        second.start_and_wait(gpus=1)
        assert third.start(gpus=2).status_code == 202
        (job_id,) = until(
            lambda: portal.jobs(user=USERS[2]), seconds=10, what="the third job is in the queue"
        )
        until(
            lambda: portal.job(job_id)["Reason"] == "Resources",
            seconds=20,
            what="Slurm says why the third job waits",
        )
        with closing(progress(third)) as events:
            said = next(line for line in events if "Resources" in line)
        assert "PENDING" in said
        first.stop()
        third.wait_until_ready()
        assert portal.job(job_id)["JobState"] == "RUNNING"


def progress(user: Visitor) -> Generator[str, None, None]:
    """Give the events that the spawn page shows, as they come."""
    path = f"/hub/api/users/{user.name}/server/progress"
    with user.http.stream("GET", path, headers={"X-XSRFToken": user.xsrf()}) as events:
        yield from (line for line in events.iter_lines() if line)


def test_stop_frees_the_gpus(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=4)
    user.stop()
    assert portal.job(job_id)["JobState"] in ("CANCELLED", "COMPLETED")
    assert portal.jobs(user=USERS[0]) == []


def test_a_job_that_ends_by_itself_is_shown_as_stopped_within_30_s(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[0])
    job_id = user.start_and_wait(gpus=1)
    portal.slurm("scancel", job_id)
    until(lambda: user.server() is None, seconds=30, what="the hub shows the server as stopped")
    form = user.http.get("/hub/spawn").text
    assert endings.last_session(endings.ended(Job(int(job_id), "CANCELLED"))) in form


def test_a_job_that_is_cancelled_while_it_waits_is_told_at_once(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[3])
    with portal.gpus_taken():
        user.start(gpus=4)
        (job_id,) = until(
            lambda: portal.jobs(user=USERS[3]), seconds=10, what="the job is in the queue"
        )
        portal.slurm("scancel", job_id)
        # The hub asks squeue, reads the job's log and cancels what may be left, one after another.
        until(lambda: user.server() is None, seconds=30, what="the start has failed")
        assert "it was cancelled" in user.http.get(f"/hub/spawn-pending/{USERS[3]}").text


def test_stop_on_the_pending_page_takes_the_job_out_of_the_queue(
    portal: Instance, visit: Visit
) -> None:
    user = visit(USERS[3])
    with portal.gpus_taken():
        user.start(gpus=4)
        until(lambda: portal.jobs(user=USERS[3]), seconds=10, what="the job is in the queue")
        user.stop()
        assert portal.jobs(user=USERS[3]) == []


def test_the_landing_folder_has_templates_and_the_nas(visit: Visit) -> None:
    user = visit(USERS[0])
    user.start_and_wait(gpus=0)
    listing = user.session("GET", "/api/contents/").json()
    names = {entry["name"] for entry in listing["content"]}
    assert {"templates", "isilon"} <= names
    datasets = user.session("GET", "/api/contents/isilon/datasets/mnist").json()["content"]
    assert "train-images-idx3-ubyte.gz" in {entry["name"] for entry in datasets}
    template = user.session("GET", "/api/contents/templates/tensorflow/mnist.ipynb").json()
    assert template["writable"] is False


def test_slurm_works_in_the_terminal_as_the_user(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[0])
    user.start_and_wait(gpus=0)
    screen = user.type_in_terminal(
        "cd; sinfo -h -o '%R:%D'; id -un; sbatch ~/templates/slurm/sample.job; echo en''d", "end"
    )
    assert "sxm2:3" in screen
    assert USERS[0] in screen
    match = re.search(r"Submitted batch job (\d+)", screen)
    assert match, screen
    until(
        lambda: portal.job(match.group(1))["JobState"] == "COMPLETED",
        seconds=60,
        what="sample.job has ended",
    )
    job = portal.job(match.group(1))
    assert (job["NumNodes"], job["NumTasks"]) == ("2", "8")
    output = user.session("GET", f"/api/contents/slurm-{match.group(1)}.out").json()["content"]
    # A site's module that is missing here does not end the job.
    assert "cuda91/toolkit: " in output, "which toolkit it is, or that there is none"
    assert "Loaded: cuda91/toolkit" in output
    assert "CUDA" in output
    tasks = re.findall(r"^task (\d) on (\S+): ", output, re.MULTILINE)
    assert sorted(task for task, _ in tasks) == list("01234567")
    assert len({node for _, node in tasks}) == 2


def test_what_a_user_keeps_at_home_changes_nothing(portal: Instance, visit: Visit) -> None:
    home = Path(pwd.getpwnam(USERS[4]).pw_dir)
    broken = {
        "portal/dsportal/__init__.py": "raise SystemExit('the wrong portal')\n",
        "spawner/jupyterhub_gpu_slurm/__init__.py": "raise SystemExit('the wrong spawner')\n",
        "jupyterlab.py": "raise SystemExit('the wrong jupyterlab')\n",
        ".bashrc": "echo broken >&2; exit 1\n",
        ".profile": "export PYTHONPATH=$HOME; exit 1\n",
        ".bash_profile": "export PYTHONPATH=$HOME; exit 1\n",
        ".config/environment.d/50.conf": f"PYTHONPATH={home}\n",
        ".jupyter/jupyter_server_config.py": "raise SystemExit('the wrong settings')\n",
        ".jupyter/jupyter_server_config.json": "{not json",
        ".local/lib/python3.11/site-packages/tornado/__init__.py": "raise SystemExit('wrong')\n",
    }
    before = {name: (home / name).read_text() for name in broken if (home / name).is_file()}
    try:
        write_files(portal, USERS[4], broken)
        user = visit(USERS[4])
        user.start_and_wait(gpus=0)
        printed = user.run("import os; print(os.environ.get('PYTHONPATH'), os.getcwd())")
        assert printed.strip() == f"None {home}"
    finally:
        packages = (home / ".local/lib/python3.11/site-packages/tornado", home / "portal")
        gone = (*packages, home / "spawner", *(home / name for name in broken))
        portal.slurm("/bin/rm", "-rf", *(str(path) for path in gone), user=USERS[4])
        write_files(portal, USERS[4], before)


def write_files(portal: Instance, name: str, texts: Mapping[str, str]) -> None:
    """Write files in somebody's home, as they would."""
    for path, text in texts.items():
        file = Path(pwd.getpwnam(name).pw_dir, path)
        portal.slurm("/usr/bin/install", "-d", str(file.parent), user=name)
        portal.slurm("/usr/bin/tee", str(file), user=name, stdin=text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpus": -1}, "whole number"),
        ({"gpus": 5}, "at most 4"),
        ({"gpus": 100000}, "whole number"),
        ({"gpus": "many"}, "whole number"),
        ({"gpus": "1\n#SBATCH --gres=gpu:4"}, "whole number"),
        ({"hours": 13}, "at most 12"),
        ({"hours": "soon"}, "hours"),
        ({"partition": "sxm2\n#SBATCH --uid=root"}, "partition"),
        ({"partition": "nowhere"}, "not open to you"),
        ({"partition": "admins"}, "not open to you"),
        ({"cmd": "/bin/sh"}, "Unknown option"),
        ({"req_options": "--uid=root"}, "Unknown option"),
    ],
)
def test_bad_options_through_the_rest_api_submit_nothing(
    portal: Instance, visit: Visit, options: dict[str, object], words: str
) -> None:
    user = visit(USERS[2])
    before = portal.slurm("scontrol", "show", "config")
    answer = user.start(**options)
    assert answer.status_code == 400
    assert words in answer.json()["message"]
    assert "Traceback" not in answer.text
    assert portal.jobs(user=USERS[2]) == []
    assert user.server() is None
    assert next_job_id(before) == next_job_id(portal.slurm("scontrol", "show", "config"))


def next_job_id(config: str) -> str:
    """Return the number that the next job will get: it shows whether one was submitted."""
    match = re.search(r"NEXT_JOB_ID\s*=\s*(\d+)", config)
    assert match, config
    return match.group(1)


def test_a_bad_form_is_shown_again_with_the_reason(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    user.http.get("/hub/spawn")
    answer = user.http.post(
        "/hub/spawn", data={"gpus": "9", "hours": "8", "partition": "sxm2", "_xsrf": user.xsrf()}
    )
    assert "at most 4" in answer.text
    assert "Traceback" not in answer.text
    assert portal.jobs(user=USERS[2]) == []


@pytest.mark.parametrize(
    "query",
    ["opt-gpus=2&opt-hours=3", "gpus=2&hours=3", "opt-gpus=2&next=%2Fhub%2Fhome&opt-hours=3"],
)
def test_a_link_fills_in_the_form_and_starts_nothing(
    portal: Instance, visit: Visit, query: str
) -> None:
    user = visit(USERS[2])
    page = user.http.get(f"/hub/spawn?{query}")
    assert 'name="gpus" value="2" checked' in page.text
    assert 'name="hours" value="3"' in page.text
    assert "Nothing has been started" in page.text
    assert portal.jobs(user=USERS[2]) == []
    assert user.server() is None


def test_a_link_with_bad_options_starts_nothing(portal: Instance, visit: Visit) -> None:
    user = visit(USERS[2])
    page = user.http.get("/hub/spawn?opt-gpus=two&opt-cmd=id")
    assert "Unknown option" in page.text
    assert "Traceback" not in page.text
    assert portal.jobs(user=USERS[2]) == []
