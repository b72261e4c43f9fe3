import pytest

from dsportal.session.environment import (
    SANE_PATH,
    Account,
    ModulesEntry,
    session_environment,
    with_port,
)

ACCOUNT = Account("user1", "/home/user1", "/bin/zsh")


def test_the_account_says_who_and_where() -> None:
    environment = session_environment(ACCOUNT, {}, {})
    assert environment == {
        "HOME": "/home/user1",
        "USER": "user1",
        "LOGNAME": "user1",
        "SHELL": "/bin/zsh",
        "PATH": SANE_PATH,
        "LANG": "C.UTF-8",
    }


def test_scripts_that_are_submitted_know_the_modules() -> None:
    entry = ModulesEntry("/usr/share/lmod/lmod/init/bash", ("/opt/modules", "/site/modules"))
    environment = session_environment(ACCOUNT, {}, {}, modules=entry)
    assert environment["BASH_ENV"] == "/usr/share/lmod/lmod/init/bash"
    assert environment["MODULEPATH"] == "/opt/modules:/site/modules"


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        (None, SANE_PATH),
        ("/usr/bin", SANE_PATH),
        ("/usr/bin/", SANE_PATH),
        ("/opt/slurm/bin", f"/opt/slurm/bin:{SANE_PATH}"),
    ],
)
def test_slurms_programs_are_found_where_the_site_has_them(folder: str | None, path: str) -> None:
    assert session_environment(ACCOUNT, {}, {}, slurm_bin_dir=folder)["PATH"] == path
    behind = session_environment(ACCOUNT, {}, {}, programs={"PATH": "/ours"}, slurm_bin_dir=folder)
    assert behind["PATH"] == f"{path}:/ours"


def test_an_account_without_a_shell_gets_sh() -> None:
    assert session_environment(Account("u", "/home/u", ""), {}, {})["SHELL"] == "/bin/sh"


@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "TMPDIR", "SLURM_CONF"])
def test_devices_scratch_space_and_cluster_are_kept(name: str) -> None:
    assert session_environment(ACCOUNT, {name: "x"}, {})[name] == "x"


@pytest.mark.parametrize(
    ("slurms", "ours"),
    [
        ("SLURM_JOB_ID", "PORTAL_JOB_ID"),
        ("SLURM_JOB_NAME", "PORTAL_JOB_NAME"),
        ("SLURM_JOB_END_TIME", "PORTAL_JOB_END_TIME"),
        ("SLURM_CPUS_ON_NODE", "PORTAL_JOB_CORES"),
        ("SLURM_GPUS_ON_NODE", "PORTAL_JOB_GPUS"),
        ("SLURMD_NODENAME", "PORTAL_JOB_NODE"),
        ("SLURM_CLUSTER_NAME", "PORTAL_JOB_CLUSTER"),
    ],
)
def test_what_describes_the_job_is_under_names_of_ours(slurms: str, ours: str) -> None:
    environment = session_environment(ACCOUNT, {slurms: "x"}, {})
    assert environment[ours] == "x"
    assert slurms not in environment


@pytest.mark.parametrize(
    "name",
    [
        "PYTHONPATH",
        "LD_PRELOAD",
        "BASH_ENV",
        "JUPYTER_CONFIG_DIR",
        "JUPYTERHUB_SINGLEUSER_APP",
        # With these, srun makes a step of the session's job.
        "SLURM_JOB_ID",
        "SLURM_JOBID",
        "SLURM_JOB_NODELIST",
        "SLURM_NNODES",
        # Options of srun and sbatch, which a job submitted from the terminal would inherit.
        "SLURM_MEM_PER_NODE",
        "SLURM_CPUS_PER_TASK",
        "SLURM_NTASKS",
        "SLURM_EXPORT_ENV",
        "SLURM_GET_USER_ENV",
        "SBATCH_EXPORT",
    ],
)
def test_nothing_else_is_inherited(name: str) -> None:
    assert name not in session_environment(ACCOUNT, {name: "x"}, {})


def test_the_hub_gives_the_rest_and_wins() -> None:
    environment = session_environment(
        ACCOUNT,
        {"SLURM_CONF": "/etc/slurm/slurm.conf"},
        {"SLURM_CONF": "/etc/other.conf", "JUPYTERHUB_USER": "user1", "LANG": "de_DE.UTF-8"},
    )
    assert environment["SLURM_CONF"] == "/etc/other.conf"
    assert environment["JUPYTERHUB_USER"] == "user1"
    assert environment["LANG"] == "de_DE.UTF-8"


@pytest.mark.parametrize("name", ["PATH", "HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"])
def test_the_hubs_own_variables_do_not_arrive(name: str) -> None:
    environment = session_environment(ACCOUNT, {}, {name: "/opt/hub"})
    assert environment.get(name) != "/opt/hub"


def test_kernels_are_found_by_the_jupyter_path() -> None:
    environment = session_environment(ACCOUNT, {}, {}, ("/opt/a", "/opt/b"))
    assert environment["JUPYTER_PATH"] == "/opt/a:/opt/b"


@pytest.mark.parametrize(
    ("planned", "real"),
    [
        ("http://0.0.0.0:0/user/user1/", "http://0.0.0.0:4711/user/user1/"),
        ("http://node001/user/user1/", "http://node001:4711/user/user1/"),
        ("https://[::]:80/user/user1/", "https://[::]:4711/user/user1/"),
        ("http://:0/user/user1/", "http://:4711/user/user1/"),
    ],
)
def test_the_planned_address_gets_the_real_port(planned: str, real: str) -> None:
    assert with_port(planned, 4711) == real
