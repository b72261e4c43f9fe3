"""Environment modules in a session: one Python by a framework's name, wherever it is asked for."""

import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.instance import USERS, Instance
from tests.network import sockets
from tests.visitor import Visitor, session_of
from tests.waiting import until

FRAMEWORKS = {
    "tensorflow": ("import tensorflow; print('version', tensorflow.__version__)", "2.21.0"),
    "keras": ("import keras; print('version', keras.__version__, keras.backend.backend())", "3."),
    "pytorch": ("import torch; print('version', torch.__version__)", "2.13.0"),
    "mxnet": ("import mxnet; print('version', mxnet.__version__)", "1.9.1"),
    "jax": ("import jax; print('version', jax.__version__)", "0.10."),
    "ir": ('cat("version", R.version$major)', "4"),
}
USER = USERS[3]
SPOILED = {
    ".bashrc": "module() { echo hijacked; }\nexport MODULEPATH=/nowhere PATH=/nowhere\nexit 7\n",
}
SCRIPT = """\
#!/bin/bash
#SBATCH --ntasks=1 --mem=200 --output=which.out
module load pytorch
command -v python
"""
PYTHON2 = """\
import sys
from ipykernel.connect import get_connection_info
transport = get_connection_info(unpack=True)["transport"]
print "%d.%d" % sys.version_info[:2], 7 / 2, isinstance("", bytes), transport
"""
FORK_OF_PYTHON2 = """\
import multiprocessing
def say():
    print "from a fork"
child = multiprocessing.Process(target=say)
child.start()
child.join()
"""
WHICH = "import shutil; print(shutil.which('python'))"
EVERYDAY = """\
import io, ipywidgets, matplotlib.pyplot, pandas, papermill, sklearn.linear_model, tqdm
table = pandas.DataFrame({"step": [1, 2], "loss": [0.5, 0.25]})
stream = io.BytesIO()
table.to_parquet(stream)
print("loss", pandas.read_parquet(stream).loss.sum())
"""


@pytest.fixture(scope="module")
def home(portal: Instance) -> Iterator[Path]:
    """A home whose files would break a shell; as it was, at the end."""
    home = Path(pwd.getpwnam(USER).pw_dir)
    before = {name: (home / name).read_bytes() for name in SPOILED if (home / name).exists()}
    for name, text in SPOILED.items():
        (home / name).write_text(text)
    yield home
    for name in SPOILED:
        (home / name).unlink()
    for name, content in before.items():
        (home / name).write_bytes(content)


@pytest.fixture(scope="module")
def user(portal: Instance, home: Path) -> Iterator[Visitor]:
    """The user of that home, with a session."""
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture
def own_shell(home: Path) -> Iterator[None]:
    """A shell that a person uses reads the person's own files, unlike all else: none is spoiled."""
    (home / ".bashrc").write_text("")
    yield
    (home / ".bashrc").write_text(SPOILED[".bashrc"])


def test_the_kernel_that_notebooks_from_elsewhere_ask_for_has_what_everybody_expects(
    user: Visitor,
) -> None:
    assert "loss 0.75" in user.run(EVERYDAY, kernel="python3")


CUDA = """
import subprocess
script = 'module load shared cuda91/toolkit; echo "$? ${CUDA_HOME:-none} $LOADEDMODULES"'
done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True)
print(done.stdout, done.stderr)
"""


def test_the_papers_modules_load_and_say_which_toolkit_it_is(user: Visitor) -> None:
    said = user.run(CUDA)
    is_there = Path("/usr/local/cuda/bin").is_dir()
    assert f"0 {'/usr/local/cuda' if is_there else 'none'} " in said
    assert "shared:cuda91/toolkit" in said
    found = "/usr/local/cuda takes its place" if is_there else "no CUDA toolkit on this host"
    assert found in said


@pytest.mark.parametrize("kernel", FRAMEWORKS)
def test_a_kernel_runs_inside_its_module(user: Visitor, kernel: str) -> None:
    code, version = FRAMEWORKS[kernel]
    with running(user, kernel) as kernel_id:
        assert f"version {version}" in user.run_in(kernel_id, code, seconds=120)
        assert len(ports_of(user)) == 1, "the session's own, and none of the kernel's"


@pytest.mark.usefixtures("own_shell")
def test_a_terminal_has_the_same_python(user: Visitor) -> None:
    kernel = user.run(WHICH, kernel="pytorch").strip()
    assert kernel.endswith("/bin/python")
    assert "kernel-pytorch" in kernel
    screen = user.type_in_terminal("module load pytorch; command -v python; echo do''ne", "done")
    assert kernel in screen


def test_a_job_script_that_a_notebook_submits_knows_the_modules(user: Visitor) -> None:
    code = (
        f"import pathlib, subprocess\npathlib.Path('which.job').write_text({SCRIPT!r})\n"
        "subprocess.run(['/usr/bin/sbatch', '--wait', 'which.job'], check=True)\n"
        "print(pathlib.Path('which.out').read_text())"
    )
    python = user.run(WHICH, kernel="pytorch").strip()
    for kernel in ("python3", "jax"):
        assert user.run(code, kernel=kernel, seconds=60).strip().endswith(python), kernel


def test_a_module_that_fails_is_told_in_the_module_systems_words(user: Visitor) -> None:
    notebook = {"name": "a", "path": "a.ipynb", "type": "notebook", "kernel": {"name": "broken"}}
    answer = user.session("POST", "/api/sessions", json=notebook)
    assert answer.status_code == 500
    message = answer.json()["message"]
    assert "no-such-framework/1.0 failed" in message
    assert "are unknown" in message
    assert "Traceback" not in answer.text


def test_a_users_own_broken_file_of_modules_is_told_too(user: Visitor, home: Path) -> None:
    file = home / ".modulerc"
    file.write_text("#%Module\nthis is no Tcl {\n")
    notebook = {"name": "b", "path": "b.ipynb", "type": "notebook", "kernel": {"name": "jax"}}
    try:
        answer = user.session("POST", "/api/sessions", json=notebook)
    finally:
        file.unlink()
    assert answer.status_code == 500
    assert f'Unable to parse:\n"{file}"' in answer.json()["message"]


@pytest.mark.usefixtures("own_shell")
def test_a_second_framework_takes_the_firsts_place(user: Visitor) -> None:
    line = "source $BASH_ENV; module load pytorch; module load jax; command -v python; echo do''ne"
    screen = user.type_in_terminal(f"/bin/bash --norc -c '{line}'", "done")
    assert "replacing" in screen
    assert "/kernel-jax" in screen.rpartition("replacing")[2]


def test_python_2_has_a_module_and_a_kernel(user: Visitor) -> None:
    with running(user, "python2") as kernel_id:
        said = user.run_in(kernel_id, PYTHON2)
        assert "2.7 3 True ipc" in said
        until(
            # What a fork wrote may come after the cell's end.
            lambda: "from a fork" in user.run_in(kernel_id, FORK_OF_PYTHON2),
            seconds=60,
            what="a fork's output is shown",
        )
        assert len(ports_of(user)) == 1


@pytest.mark.parametrize("kernel", ["python2", "ir", "pytorch"])
def test_a_kernel_runs_nothing_that_lies_beside_its_notebook(
    user: Visitor, home: Path, kernel: str
) -> None:
    folder = home / "a colleague's"
    startup = folder / "profile_default/startup"
    startup.mkdir(parents=True)
    for place in (folder / "ipython_kernel_config.py", folder / "psutil.py", startup / "00.py"):
        place.write_text("open('ran', 'w').close()\n")
    (folder / ".Rprofile").write_text("file.create('ran')\n")
    # Nobody's: not the user's own.
    for place in (folder, *folder.rglob("*")):
        os.chown(place, 65534, 65534)
    folder.chmod(0o777)
    try:
        with running(user, kernel, path="a colleague's/x.ipynb") as kernel_id:
            assert "2" in user.run_in(kernel_id, "print(1 + 1)")
        assert not (folder / "ran").exists()
    finally:
        shutil.rmtree(folder)


@contextmanager
def running(user: Visitor, kernel: str, **more: str) -> Iterator[str]:
    """Give a kernel that ends with the block."""
    kernel_id = user.open_kernel(kernel=kernel, **more)
    try:
        yield kernel_id
    finally:
        user.session("DELETE", f"/api/kernels/{kernel_id}").raise_for_status()


def ports_of(user: Visitor) -> list[int]:
    (job,) = user.instance.jobs(user=user.name)
    return sockets.tcp_ports_of_job(user.name, job)
