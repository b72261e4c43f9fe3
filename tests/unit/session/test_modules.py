import asyncio
import os
from pathlib import Path

import pytest

from dsportal.session.modules import ModulesError, ModuleSystem, parsed

# What a module system is to us: a file that defines `module`.
INIT = r"""
module() {
    [ "$1" = load ] || return 2
    shift
    for name; do
        case $name in
            missing) echo "The following module(s) are unknown: $name" >&2; return 1 ;;
            # By the name of this file, which the test looks for.
            slow) (exec -a "${BASH_SOURCE[0]}" sleep 600) ;;
            noisy) echo "a word to the user" ;;
            two-lines) export LINES_OF_TEXT=$'first\nsecond=third' ;;
            *) export PATH="/opt/$name/bin:$PATH" LOADED="${LOADED:-}$name " ;;
        esac
    done
}
"""


@pytest.fixture
def init(tmp_path: Path) -> str:
    file = tmp_path / "it's the init"
    file.write_text(INIT)
    return str(file)


def loaded(init: str, *modules: str, seconds: float = 30, **environment: str) -> dict[str, str]:
    system = ModuleSystem(init, seconds)
    return asyncio.run(system.loaded(modules, {"PATH": "/usr/bin:/bin", **environment}))


def test_modules_are_loaded_in_their_order(init: str) -> None:
    environment = loaded(init, "shared", "pytorch/2.13")
    assert environment["LOADED"] == "shared pytorch/2.13 "
    assert environment["PATH"] == "/opt/pytorch/2.13/bin:/opt/shared/bin:/usr/bin:/bin"


def test_the_rest_of_the_environment_stays(init: str) -> None:
    environment = loaded(init, "shared", JPY_PARENT_PID="12", BASH_ENV="/etc/init", TEXT="a\nb=c")
    assert environment["JPY_PARENT_PID"] == "12"
    assert environment["BASH_ENV"] == "/etc/init"
    assert environment["TEXT"] == "a\nb=c"


def test_bash_adds_nothing_of_its_own(init: str) -> None:
    assert set(loaded(init, "shared")) == {"PATH", "LOADED", "PWD"}


def test_a_variable_may_have_several_lines(init: str) -> None:
    assert loaded(init, "two-lines")["LINES_OF_TEXT"] == "first\nsecond=third"


def test_what_a_module_prints_is_not_taken_for_a_variable(init: str) -> None:
    assert "a word to the user" not in str(loaded(init, "noisy"))


def test_a_module_that_fails_is_told_in_the_module_systems_words(init: str) -> None:
    with pytest.raises(ModulesError, match="failed") as failure:
        loaded(init, "shared", "missing")
    assert "The following module(s) are unknown: missing" in str(failure.value)


def test_an_init_that_is_not_there_is_told() -> None:
    with pytest.raises(ModulesError, match="No such file"):
        loaded("/no/such/init", "shared")


def test_a_load_that_hangs_is_ended_with_all_its_processes(init: str) -> None:
    loading = ModuleSystem(init, 0.5).loaded(["slow"], {"PATH": "/usr/bin:/bin"})
    with pytest.raises(ModulesError, match=r"more than 0\.5 seconds"):
        asyncio.run(asyncio.wait_for(loading, 20))
    sleeping = [
        pid
        for pid in filter(str.isdecimal, os.listdir("/proc"))
        if is_ours(Path("/proc", pid, "cmdline"), init)
    ]
    assert sleeping == []


def is_ours(command_line: Path, init: str) -> bool:
    try:
        return init.encode() in command_line.read_bytes()
    except OSError:
        return False


def test_a_name_is_never_a_command(init: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    environment = loaded(init, f"x; touch {made}", f"$(touch {made})")
    assert environment["LOADED"] == f"x; touch {made} $(touch {made}) "
    assert not made.exists()


def test_bytes_that_are_no_text_are_kept() -> None:
    assert os.fsencode(parsed(b"A=\xff\0_=/usr/bin/env\0SHLVL=1\0")["A"]) == b"\xff"
