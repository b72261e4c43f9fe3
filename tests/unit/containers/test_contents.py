import subprocess

import pytest

from dsportal.containers.contents import COMMAND, ImageKernel, parsed

END = "portal-image end\n"


def test_kernels_are_named_by_their_language_and_version() -> None:
    answer = f"portal-image kernel python 3.11.2\nportal-image kernel R 4.2.2\n{END}"
    found = parsed(answer)
    assert found is not None
    assert [kernel.title for kernel in found] == ["Python 3.11", "R 4.2"]
    assert [kernel.argv[0] for kernel in found] == ["python", "R"]


def test_an_answer_that_stops_halfway_is_none() -> None:
    assert parsed("portal-image kernel python3 3.11.2\n") is None
    assert parsed("") is None


@pytest.mark.parametrize(
    "line",
    [
        "portal-image kernel /bin/evil 3.11.2",
        "portal-image kernel python3 3.11.2; evil",
        "portal-image kernel python3 --nv",
        "portal-image kernel python3 <b>3.11</b>",
        "say: portal-image kernel python3 3.11.2",
    ],
)
def test_an_images_own_idea_of_a_kernel_is_not_taken(line: str) -> None:
    found = parsed(f"{line}\n{END}")
    assert found is not None
    assert found == ()


def test_a_system_without_a_kernel_answers_to_the_end() -> None:
    nothing = {"PATH": "/nowhere"}
    done = subprocess.run(COMMAND, env=nothing, capture_output=True, text=True, timeout=30)
    found = parsed(done.stdout)
    assert found is not None
    assert found == ()


def test_the_program_that_is_asked_is_the_one_that_is_started() -> None:
    assert ImageKernel("python3", "3.11").argv[:3] == ["python3", "-m", "ipykernel_launcher"]
