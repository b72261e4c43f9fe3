"""Images' names: what is one, and what follows from it."""

import pytest

from dsportal.images.errors import ImageError
from dsportal.images.reference import Reference, parse

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
OTHER = f"sha256:{'f' * 64}"


@pytest.mark.parametrize(
    ("text", "reference", "address"),
    [
        (
            "nvcr.io/nvidia/pytorch:24.05-py3",
            Reference("nvcr.io", "nvidia/pytorch", "24.05-py3"),
            "docker://nvcr.io/nvidia/pytorch:24.05-py3",
        ),
        (
            "docker://localhost:5000/a/b__c-d",
            Reference("localhost:5000", "a/b__c-d", "latest"),
            "docker://localhost:5000/a/b__c-d:latest",
        ),
        (
            f"registry.example/x@{DIGEST}",
            Reference("registry.example", "x", None, DIGEST),
            f"docker://registry.example/x@{DIGEST}",
        ),
        (
            f"registry.example/x:1@{DIGEST}",
            Reference("registry.example", "x", None, DIGEST),
            f"docker://registry.example/x@{DIGEST}",
        ),
    ],
)
def test_a_name_leads_to_one_image(text: str, reference: Reference, address: str) -> None:
    assert parse(text) == reference
    assert parse(str(reference)) == reference
    assert reference.address() == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pytorch",
        "nvidia/pytorch:24.05-py3",
        "https://nvcr.io/nvidia/pytorch",
        "nvcr.io/../etc/passwd",
        "nvcr.io/nvidia//pytorch",
        "nvcr.io/Nvidia/pytorch",
        "nvcr.io/nvidia/pytorch:-x",
        "nvcr.io/nvidia/pytorch:a b",
        "nvcr.io/nvidia/pytorch\n",
        "nvcr.io/nvidia/pytorch@sha256:12",
        "user:word@nvcr.io/nvidia/pytorch",
        "oci:/tmp/mine",
        "dir:/tmp/mine:1.0",
        f"nvcr.io/{'a' * 600}",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ImageError, match="is no image's name"):
        parse(text)


@pytest.mark.parametrize(
    ("prefixes", "is_below"),
    [
        (["nvcr.io/nvidia"], True),
        (["nvcr.io"], True),
        (["nvcr.io/nvidia/"], True),
        (["nvcr.io/nvid"], False),
        (["nvcr.io/nvidia/pytorch"], False),
        (["nvcr.i"], False),
        ([], False),
    ],
)
def test_a_shared_folder_holds_whole_names(prefixes: list[str], is_below: bool) -> None:
    assert parse("nvcr.io/nvidia/pytorch:24.05-py3").is_below(prefixes) is is_below


def test_another_content_is_another_file() -> None:
    reference = parse("nvcr.io/nvidia/pytorch:24.05-py3")
    shown = "0123456789abcdef" * 2
    assert reference.file_name(DIGEST) == f"pytorch-24.05-py3-{shown}.sif"
    assert reference.file_name(OTHER) == f"pytorch-24.05-py3-{'f' * 32}.sif"
    assert parse(f"nvcr.io/x@{DIGEST}").file_name(DIGEST) == f"x-{shown}.sif"


def test_each_name_has_a_place_of_its_own_in_a_cache() -> None:
    names = ["r.example/a/b:1", "r.example/a:b", "r.example:1/a/b", f"r.example/a/b@{DIGEST}"]
    places = [parse(name).link for name in names]
    assert len(set(places)) == len(names)
    assert places[2] == "by-name/r.example@1/a/b@latest.sif"
    assert not any(":" in place for place in places)
