"""A user builds an image in a session, with nothing but the template."""

import json
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import images
from tests.instance import ROOT, USERS, Instance
from tests.visitor import Visitor, session_of

USER = USERS[1]
NOTEBOOK = ROOT / "notebook_templates/containers/build.ipynb"


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USER) as user:
        yield user


@pytest.fixture
def folder(portal: Instance) -> Iterator[Path]:
    """A folder for images in the user's home, whose name has a space."""
    folder = Path(pwd.getpwnam(USER).pw_dir, "my images")
    yield folder
    portal.slurm("/bin/rm", "-rf", str(folder), user=USER)


@pytest.fixture
def kernel(user: Visitor) -> Iterator[str]:
    kernel = user.open_kernel()
    yield kernel
    user.session("DELETE", f"/api/kernels/{kernel}")


def run_all(user: Visitor, kernel: str, **parameters: str) -> str:
    """Run the template's cells with these parameters; return all that they wrote."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    codes[0] += "".join(f"\n{name} = {value!r}" for name, value in parameters.items())
    return "".join(user.run_in(kernel, code, seconds=180) for code in codes)


def test_an_image_is_built_and_run_in_a_session(user: Visitor, kernel: str, folder: Path) -> None:
    image = folder / "own.sif"
    # Begun with what the template names, which the portal's deployment has made.
    said = run_all(user, kernel, image=str(image))
    assert "Build complete" in said
    assert said.splitlines()[-2:] == [
        "Hello from an image of my own",
        str(pwd.getpwnam(USER).pw_uid),
    ]
    assert [file.name for file in folder.iterdir()] == ["own.sif"]
    assert image.owner() == USER

    before = image.stat().st_mtime_ns
    again = user.run_in(kernel, "building.build(definition, image, base=base)")
    assert "already exists" in again
    assert image.stat().st_mtime_ns == before


def test_the_nas_is_in_an_image_where_it_is_outside(user: Visitor) -> None:
    look = f"apptainer -q exec {images.small_folder()} ls -d isilon/datasets"
    line = f'cd; module load apptainer; {look}; echo do""ne'
    screen = user.type_in_terminal(line, "done").rpartition("echo do")[2]
    assert "isilon/datasets" in screen
    assert "No such file" not in screen


def test_a_definition_that_fails_leaves_no_image(user: Visitor, kernel: str, folder: Path) -> None:
    definition = folder / "own.def"
    text = "Bootstrap: localimage\nFrom: {{ base }}\n%post\n    no-such-program\n"
    write = f"folder.mkdir(); (folder / 'own.def').write_text({text!r})"
    user.run(f"from pathlib import Path; folder = Path({str(folder)!r}); {write}")
    said = run_all(
        user,
        kernel,
        base=str(images.small_image()),
        image=str(folder / "own.sif"),
        definition=str(definition),
    )
    assert "no-such-program" in said
    assert "BuildError" in said
    assert [file.name for file in folder.iterdir()] == ["own.def"]


@pytest.mark.parametrize(
    ("module", "program", "variable"),
    [
        ("apptainer", "apptainer", "APPTAINERENV_GREETING"),
        ("singularity", "singularity", "SINGULARITYENV_GREETING"),
    ],
)
def test_a_users_script_finds_the_program_by_its_module(
    user: Visitor, module: str, program: str, variable: str
) -> None:
    image = images.small_image()
    script = f"module load {module}; {variable}=hello {program} -q exec --cleanenv {image} env"
    said = user.run(
        f"import subprocess; print(subprocess.run(['/bin/bash', '-c', {script!r}], "
        "capture_output=True, text=True))"
    )
    assert "GREETING=hello" in said
    assert ("singularity is Apptainer here" in said) == (module == "singularity")
