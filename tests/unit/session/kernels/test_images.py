import asyncio
import importlib
import json
import os
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dsportal.containers.images import ImageFile, ImageFileError
from dsportal.session.files.mounts import Mounts
from dsportal.session.kernels.image_kernels import ImageProvisioner, members
from dsportal.session.kernels.image_probe import Answers, last_words
from dsportal.session.kernels.image_specs import PROVISIONER, CatalogueImage
from dsportal.session.kernels.images import SessionImages
from dsportal.session.kernels.manager import SessionKernels
from dsportal.session_schema import Containers, KernelImage
from tests.instance import ROOT

ANSWER = "portal-image kernel python3 3.11.2\nportal-image kernel R 4.2.2\nportal-image end\n"
TOOLS = CatalogueImage("image-tools", "Tools", Path("/images/tools.sif"))


def session_images(
    home: Path, entry: CatalogueImage | None = None, **settings: Any
) -> SessionImages:
    found = SessionImages(Containers(apptainer="/bin/false", **settings), home, Mounts())
    if entry is not None:
        found.catalogue = {entry.name: entry}
    return found


def test_each_kernel_of_an_image_is_offered_with_its_name() -> None:
    specs = TOOLS.having(ANSWER).specs()
    names = {name: spec["display_name"] for name, spec in specs.items()}
    assert names == {
        "image-tools-python": "Python 3.11 · Tools",
        "image-tools-r": "R 4.2 · Tools",
    }
    assert specs["image-tools-r"]["language"] == "R"


def test_an_image_without_kernels_says_what_to_do() -> None:
    entry = TOOLS.having("portal-image end\n")
    assert list(entry.specs()) == ["image-tools"]
    assert entry.specs()["image-tools"]["display_name"] == "Cannot be used · Tools"
    assert "has neither ipykernel nor IRkernel: install one" in entry.trouble
    assert entry.trouble.endswith("Tell the administrators.")


def test_a_page_gets_the_kernels_in_images_beside_the_others(tmp_path: Path) -> None:
    kernels = SessionKernels(offered={}, pictures=str(tmp_path / "pictures"), kernel_dirs=[])
    kernels.session_images = session_images(tmp_path, TOOLS.having(ANSWER))
    shown = kernels.get_all_specs()
    assert {"image-tools-python", "image-tools-r"} <= set(shown)
    picture = tmp_path / "pictures/image-tools-python/logo-svg.svg"
    assert ">To</text>" in picture.read_text()
    assert kernels.get_kernel_spec("image-tools-python").argv[0] == "python3"


def test_jupyter_finds_what_starts_it_by_its_name() -> None:
    project = tomllib.loads((ROOT / "portal/pyproject.toml").read_text())["project"]
    named = project["entry-points"]["jupyter_client.kernel_provisioners"]
    module, _, name = named[PROVISIONER].partition(":")
    assert getattr(importlib.import_module(module), name) is ImageProvisioner


def test_a_signal_is_for_the_programs_of_a_group_not_for_its_first() -> None:
    shell = ["/bin/sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(
        shell, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        assert first.stdout is not None
        sleep = int(first.stdout.readline())
        try:
            assert members(first.pid) == [sleep]
        finally:
            os.killpg(first.pid, signal.SIGKILL)


def test_own_images_and_the_sites_are_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "mine.sif").write_text("no image")
    (folder / "a name with spaces.sif").write_text("no image")
    found = session_images(
        tmp_path,
        images={"gone": KernelImage("Gone", str(tmp_path / "gone.sif"))},
        own_images="images",
    )
    asyncio.run(found.look())
    assert set(found.specs()) == {"image-gone", "own-mine.sif"}
    assert "mine.sif is no image" in found.catalogue["own-mine.sif"].trouble
    (folder / "mine.sif").unlink()
    asyncio.run(found.look())
    assert set(found.specs()) == {"image-gone"}


def test_a_node_without_apptainer_says_so(tmp_path: Path, system: Path) -> None:
    found = SessionImages(Containers("/no/apptainer", own_images="images"), tmp_path, Mounts())
    asyncio.run(found.look())
    assert found.catalogue["own-system"].trouble.endswith(
        "/no/apptainer: No such file or directory."
    )


def test_an_image_that_does_not_answer_is_told(tmp_path: Path, system: Path) -> None:
    found = session_images(tmp_path, own_images="images")
    asyncio.run(found.look())
    assert (
        found.catalogue["own-system"].trouble == f"{system} cannot be used. Apptainer says: nothing"
    )


def test_an_image_that_does_not_answer_is_asked_once_and_told_again(
    tmp_path: Path, system: Path
) -> None:
    found = session_images(tmp_path, own_images="images")

    async def reason() -> ImageFileError:
        image = await found._examined(CatalogueImage("own-system", "system", system, is_own=True))
        with pytest.raises(ImageFileError) as raised:
            await found._asked(image, "/bin/false")
        return raised.value

    first, again, last = (asyncio.run(reason()) for _ in range(3))
    assert str(first) == str(again) == str(last)
    # One that is kept and raised again keeps more at each look.
    assert again is not last


def test_a_site_without_containers_looks_at_nothing(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images/mine.sif").touch()
    found = SessionImages(Containers(own_images="images"), tmp_path, Mounts())
    asyncio.run(found.look())
    assert found.specs() == {}


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A folder image, as far as can be seen from outside."""
    (tmp_path / "images/system/bin").mkdir(parents=True)
    (tmp_path / "images/system/bin/sh").touch()
    return tmp_path / "images/system"


def test_an_image_sees_the_folders_that_are_there(tmp_path: Path, system: Path) -> None:
    entry = CatalogueImage("own-system", "system", system, is_own=True).having(ANSWER)
    found = session_images(tmp_path, entry, binds=("/usr/share", "/no/such/folder"))
    argv = asyncio.run(found.argv("own-system", ["python3", "-V"]))
    assert argv[argv.index("--bind") + 1] == "/usr/share"
    assert "/no/such/folder" not in argv
    assert argv[-3:] == [str(system), "python3", "-V"]


def test_an_image_that_others_may_change_by_now_is_not_run(tmp_path: Path, system: Path) -> None:
    found = session_images(
        tmp_path, CatalogueImage("own-system", "system", system, is_own=True).having(ANSWER)
    )
    system.chmod(0o777)
    with pytest.raises(ImageFileError, match="Others may change"):
        asyncio.run(found.argv("own-system", ["python3"]))


def test_a_kernel_whose_image_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(ImageFileError, match=r"own-old.sif, is not there any more"):
        asyncio.run(session_images(tmp_path).argv("own-old.sif", ["python3"]))


def test_an_answer_is_kept_until_the_image_changes(tmp_path: Path) -> None:
    Answers(tmp_path).keep(ImageFile(Path("/a.sif"), "/a.sif:1"), "old")
    Answers(tmp_path).keep(ImageFile(Path("/a.sif"), "/a.sif:2"), "new")
    kept = Answers(tmp_path)
    assert kept.of(ImageFile(Path("/a.sif"), "/a.sif:2")) == "new"
    assert kept.of(ImageFile(Path("/a.sif"), "/a.sif:1")) is None


def test_an_answer_of_a_folder_is_kept_for_the_session_alone(tmp_path: Path) -> None:
    folder = ImageFile(Path("/a"), "/a:1", is_folder=True)
    answers = Answers(tmp_path)
    assert answers.of(folder) is None
    answers.keep(folder, "known")
    assert answers.of(folder) == "known"
    assert Answers(tmp_path).of(folder) is None


@pytest.mark.parametrize("content", ["", "[]", '{"other question": {"/a.sif:1": "x"}}', "\0"])
def test_answers_that_cannot_be_read_are_asked_for_again(tmp_path: Path, content: str) -> None:
    image = ImageFile(Path("/a.sif"), "/a.sif:1")
    Answers(tmp_path).keep(image, "known")
    (file,) = tmp_path.glob(".cache/*/images.json")
    assert json.loads(file.read_text())
    file.write_text(content)
    assert Answers(tmp_path).of(image) is None


def test_a_home_that_takes_nothing_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / ".cache").touch()
    Answers(tmp_path).keep(ImageFile(Path("/a.sif"), "/a.sif:1"), "known")
    assert os.listdir(tmp_path) == [".cache"]


def test_apptainers_reason_is_the_last_that_it_says() -> None:
    said = "INFO:    Converting\n\x1b[31mFATAL:   \x1b[0mimage is no squashfs\n\n"
    assert last_words(said) == "image is no squashfs"
    assert last_words("") == "nothing"
