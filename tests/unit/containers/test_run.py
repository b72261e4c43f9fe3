from pathlib import Path

import pytest

from dsportal.containers.run import (
    BindError,
    exec_argv,
    exec_environment,
    has_nvidia_devices,
    probe_argv,
)

SESSION = {
    "CUDA_VISIBLE_DEVICES": "0,1",
    "HOME": "/home/maria",
    "JUPYTERHUB_API_TOKEN": "secret",
    "LD_LIBRARY_PATH": "/opt/module/lib",
    "LOADEDMODULES": "pytorch/2.13",
    "PATH": "/home/maria/bin:/usr/bin",
    "PYTHONPATH": "/opt/module/python",
    "PORTAL_JOB_ID": "17",
    "SLURM_JOB_ID": "17",
    "SLURM_JWT": "secret",
    "TMPDIR": "/scratch/17",
}


def argv(**changes: object) -> list[str]:
    given: dict[str, object] = {"home": "/home/maria", **changes}
    return exec_argv("/usr/bin/apptainer", "/images/a.sif", ["python3", "-V"], **given)  # type: ignore[arg-type]


def test_a_command_runs_with_the_home_and_the_folders() -> None:
    assert argv(binds=["/mnt/isilon", "/scratch", "/mnt/isilon"]) == [
        *("/usr/bin/apptainer", "exec", "--cleanenv", "--no-eval", "--home", "/home/maria"),
        *("--bind", "/mnt/isilon", "--bind", "/scratch"),
        *("/images/a.sif", "python3", "-V"),
    ]


def test_a_file_of_the_host_is_shown_at_a_path_of_the_image() -> None:
    shown = argv(shown_at={"/etc/inside.py": "/outside.py"})
    assert shown[6:8] == ["--bind", "/outside.py:/etc/inside.py:ro"]
    with pytest.raises(BindError, match="cannot be shown in an image"):
        argv(shown_at={"/etc/inside:rw": "/outside.py"})


def test_the_driver_is_there_only_where_it_is_asked_for() -> None:
    assert "--nv" not in argv()
    assert argv(nv=True)[-4:] == ["--nv", "/images/a.sif", "python3", "-V"]


def test_devices_tell_whether_there_is_a_driver(tmp_path: Path) -> None:
    assert not has_nvidia_devices(tmp_path / "nvidiactl")
    (tmp_path / "nvidiactl").touch()
    assert has_nvidia_devices(tmp_path / "nvidiactl")


@pytest.mark.parametrize("folder", ["/data,/etc", "/data:/etc", "relative", ""])
def test_a_folder_that_apptainer_would_read_otherwise_is_refused(folder: str) -> None:
    with pytest.raises(BindError, match="cannot be shown in an image"):
        argv(binds=[folder])


def test_the_program_is_told_of_its_job_and_its_devices() -> None:
    told = exec_environment(SESSION)
    assert told["APPTAINERENV_CUDA_VISIBLE_DEVICES"] == "0,1"
    assert told["APPTAINERENV_SLURM_JOB_ID"] == "17"
    assert told["APPTAINERENV_PORTAL_JOB_ID"] == "17"
    assert told["TMPDIR"] == told["APPTAINERENV_TMPDIR"] == "/scratch/17"


def test_tokens_and_what_modules_set_stay_outside() -> None:
    told = exec_environment(SESSION)
    assert "secret" not in told.values()
    assert not any("/opt/module" in text or "pytorch" in text for text in told.values())
    assert told["PATH"].startswith("/usr/local/bin:/usr/bin")


def test_what_the_settings_and_the_user_set_is_told() -> None:
    own = {"APPTAINERENV_SEED": "1", "SINGULARITYENV_SEED": "2", "SINGULARITYENV_MODE": "fast"}
    told = exec_environment(SESSION | own, {"KERAS_BACKEND": "torch"})
    assert told["APPTAINERENV_KERAS_BACKEND"] == "torch"
    assert told["APPTAINERENV_SEED"] == "1"
    assert told["APPTAINERENV_MODE"] == "fast"


def test_a_users_way_to_steer_apptainer_itself_does_not_get_in() -> None:
    told = exec_environment({"APPTAINER_BIND": "/etc", "SINGULARITY_BIND": "/etc"})
    assert "/etc" not in told.values()


def test_what_looks_into_an_image_shows_it_nothing() -> None:
    words = probe_argv("/usr/bin/apptainer", "/images/a.sif", ["/bin/true"])
    assert {"--containall", "--no-home", "--network", "none"} < set(words)
    assert "--bind" not in words
    assert "--nv" not in words
