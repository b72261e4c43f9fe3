from pathlib import Path

import pytest

from jupyterhub_gpu_slurm import __main__ as command
from jupyterhub_gpu_slurm.launcher_files import LauncherSetup

SETUP = ["install-launcher", "--hub-user=jupyterhub", "--runas=%scientists", "--operator=slurm"]


def test_the_rule_names_one_program_and_no_more_users() -> None:
    setup = LauncherSetup("jupyterhub", ("%scientists", "ada"), operator="slurm")
    *_, rule = setup.sudo_rule().content.splitlines()
    runs = 'ALL=(%scientists, ada, slurm) NOPASSWD: /usr/local/libexec/slurm-launcher ""'
    assert rule == f"jupyterhub {runs}"
    assert setup.sudo_rule().mode == 0o440


@pytest.mark.parametrize(
    "change",
    [
        {"hub_user": "jupyter hub"},
        {"hub_user": "a, ALL"},
        {"hub_user": "root"},
        {"runas": ()},
        {"runas": ("ALL",)},
        {"runas": ("root",)},
        {"runas": ("%root",)},
        {"runas": ("OPERATORS",)},
        {"runas": ("%a\nb ALL=(ALL) NOPASSWD: ALL",)},
        {"operator": "root"},
        {"operator": "%slurm"},
        {"mark": "a b"},
        {"path": Path("libexec/launcher")},
        {"path": Path("/opt/launcher, /opt/shell")},
        {"path": Path("/opt/../tmp/launcher")},
        {"slurm_conf": Path("slurm.conf")},
    ],
)
def test_what_would_mean_more_in_a_rule_is_refused(change: dict[str, object]) -> None:
    given: dict[str, object] = {"hub_user": "jupyterhub", "runas": ("%scientists",)}
    with pytest.raises(ValueError, match=r"\w"):
        LauncherSetup(**given | change)  # type: ignore[arg-type]


def test_print_shows_it_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "launcher"
    assert command.main([*SETUP, f"--path={path}", f"--sudoers={tmp_path}", "--print"]) == 0
    shown = capsys.readouterr().out
    assert f'NOPASSWD: {path} ""' in shown
    assert '"operator": "slurm"' in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(
    tmp_path: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    assert command.main([*SETUP, f"--path={folder / 'x'}", f"--sudoers={tmp_path}"]) == 1
    assert "can be changed by others than root" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
