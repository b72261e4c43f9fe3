import json
from typing import Any

import pytest

from dsportal.session_schema import (
    Certificate,
    Containers,
    InputError,
    Kernel,
    KernelImage,
    SessionInput,
    WebTool,
    parse,
    to_json,
)

ENVIRONMENT = {
    "JUPYTERHUB_API_TOKEN": "secret",
    "JUPYTERHUB_SERVICE_PREFIX": "/user/user1/",
    "JUPYTERHUB_USER": "user1",
    "PORTAL_PORT_CALLBACK_URL": "http://hub:8081/hub/api/gpu-session/port",
}

KERNEL = {
    "display_name": "PyTorch 2.13",
    "interpreter": "python",
    "language": "python",
    "modules": ["pytorch/2.13"],
    "environment": {"OMP_NUM_THREADS": "8"},
}

TOOL = {
    "title": "DIGITS",
    "icon": "",
    "command": ["digits-devserver"],
    "modules": ["shared/digits/6.1.1"],
    "environment": {"DIGITS_JOBS_DIR": "~/digits-logs"},
    "listens": "port",
    "port": 5000,
    "has_own_network": True,
    "absolute_url": True,
    "start_timeout_seconds": 60,
}

CONTAINERS = {
    "apptainer": "/usr/bin/apptainer",
    "images": {"tools": {"title": "Tools", "path": "/images/tools.sif"}},
    "own_images": "",
    "binds": ["/scratch"],
}


def test_all_keys_are_read() -> None:
    orders = parse(
        json.dumps(
            {
                "environment": ENVIRONMENT,
                "certificate": {"key": "K", "certificate": "C", "authorities": "A"},
                "folders": {"isilon": "/mnt/isilon"},
                "folder_notes": {"isilon": "The NAS."},
                "look": {"title": "Portal", "accent": "#3556c4"},
                "templates": "templates",
                "jupyter_path": ["/opt/share/jupyter"],
                "tensorboard_python": "/opt/tensorboard/bin/python",
                "tensorboards": 2,
                "tensorboard_idle_minutes": 0,
                "warning_minutes": [30, 10],
                "modules_init": "/usr/share/lmod/lmod/init/bash",
                "module_paths": ["/opt/modules"],
                "kernels": {"pytorch": KERNEL},
                "tools": {"digits": TOOL},
                "containers": CONTAINERS,
                "cluster_url": "http://hub:8002",
                "slurm_bin_dir": "/opt/slurm/bin",
                "umask": "0027",
            }
        )
    )
    assert orders.environment["JUPYTERHUB_USER"] == "user1"
    assert orders.certificate == Certificate("K", "C", "A")
    assert "K" not in repr(orders.certificate)
    assert orders.cluster_url == "http://hub:8002"
    assert orders.slurm_bin_dir == "/opt/slurm/bin"
    assert orders.umask == "0027"
    assert orders.folders == {"isilon": "/mnt/isilon"}
    assert orders.folder_notes == {"isilon": "The NAS."}
    assert orders.look == {"title": "Portal", "accent": "#3556c4"}
    assert orders.templates == "templates"
    assert orders.jupyter_path == ("/opt/share/jupyter",)
    assert orders.tensorboard_python == "/opt/tensorboard/bin/python"
    assert (orders.tensorboards, orders.tensorboard_idle_minutes) == (2, 0)
    assert orders.warning_minutes == (30, 10)
    assert orders.modules_init == "/usr/share/lmod/lmod/init/bash"
    assert orders.module_paths == ("/opt/modules",)
    assert orders.kernels == {
        "pytorch": Kernel(
            display_name="PyTorch 2.13",
            interpreter="python",
            language="python",
            modules=("pytorch/2.13",),
            environment={"OMP_NUM_THREADS": "8"},
        )
    }
    assert orders.tools == {
        "digits": WebTool(
            title="DIGITS",
            command=("digits-devserver",),
            modules=("shared/digits/6.1.1",),
            environment={"DIGITS_JOBS_DIR": "~/digits-logs"},
            listens="port",
            port=5000,
            has_own_network=True,
            absolute_url=True,
        )
    }
    assert orders.containers == Containers(
        apptainer="/usr/bin/apptainer",
        images={"tools": KernelImage("Tools", "/images/tools.sif")},
        own_images=None,
        binds=("/scratch",),
    )


def test_the_environment_alone_will_do() -> None:
    orders = parse(json.dumps({"environment": ENVIRONMENT}))
    assert (orders.folders, orders.jupyter_path, orders.tensorboard_python) == ({}, (), None)


def test_an_empty_tensorboard_python_is_none() -> None:
    text = json.dumps({"environment": ENVIRONMENT, "tensorboard_python": ""})
    assert parse(text).tensorboard_python is None


def test_the_callback_address_is_not_for_kernels() -> None:
    orders = parse(json.dumps({"environment": ENVIRONMENT}))
    assert orders.callback_url == "http://hub:8081/hub/api/gpu-session/port"
    assert "PORTAL_PORT_CALLBACK_URL" not in orders.variables


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ({}, "missing key: environment"),
        ({"environment": ENVIRONMENT, "command": "x"}, "unknown key: command"),
        ({"environment": {}}, "missing in environment: JUPYTERHUB_API_TOKEN"),
        ({"environment": ENVIRONMENT | {"A": 1}}, "environment: not an object of texts"),
        (
            {"environment": ENVIRONMENT, "containers": {"argv": []}},
            "containers: not an object with apptainer, binds, images, own_images",
        ),
        (
            {"environment": ENVIRONMENT, "containers": {"images": {"a": {"path": "/a.sif"}}}},
            "containers.images.a: not an object with path, title",
        ),
        ({"environment": ENVIRONMENT, "folders": []}, "folders: not an object of texts"),
        ({"environment": ENVIRONMENT, "templates": 1}, "templates: not a text"),
        ({"environment": ENVIRONMENT, "cluster_url": 1}, "cluster_url: not a text"),
        ({"environment": ENVIRONMENT, "is_encrypted": "no"}, "is_encrypted: not true or false"),
        (
            {"environment": ENVIRONMENT, "certificate": {"key": "K"}},
            "certificate: not an object with authorities, certificate, key",
        ),
        ({"environment": ENVIRONMENT, "kernels": []}, "kernels: not an object"),
        (
            {"environment": ENVIRONMENT, "kernels": {"a": {}}},
            "kernels.a: not an object with display_name, environment",
        ),
        (
            {"environment": ENVIRONMENT, "kernels": {"a": KERNEL | {"modules": "shared"}}},
            "kernels.a.modules: not a list of texts",
        ),
        (
            {"environment": ENVIRONMENT, "kernels": {"a": KERNEL | {"interpreter": 3}}},
            "kernels.a.interpreter: not a text",
        ),
        ({"environment": ENVIRONMENT, "tools": []}, "tools: not an object"),
        (
            {"environment": ENVIRONMENT, "tools": {"a": {}}},
            "tools.a: not an object with absolute_url",
        ),
        (
            {"environment": ENVIRONMENT, "tools": {"a": TOOL | {"has_own_network": 1}}},
            "tools.a.has_own_network: not true or false",
        ),
        (
            {"environment": ENVIRONMENT, "tools": {"a": TOOL | {"port": "5000"}}},
            "tools.a.port: not a whole number",
        ),
        ({"environment": ENVIRONMENT, "jupyter_path": "/opt"}, "jupyter_path: not a list"),
        ({"environment": ENVIRONMENT, "tensorboard_python": 1}, "tensorboard_python: not a text"),
        ({"environment": ENVIRONMENT, "tensorboards": "2"}, "tensorboards: not a whole number"),
        ({"environment": ENVIRONMENT, "warning_minutes": ["2"]}, "warning_minutes: not a list"),
    ],
)
def test_anything_else_is_refused_by_name(given: Any, message: str) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(InputError, match=message):
        parse(text)


def test_what_the_hub_writes_is_what_a_session_reads() -> None:
    whole = SessionInput(
        environment=ENVIRONMENT,
        certificate=Certificate("K", "C", "A"),
        warning_minutes=(30, 10),
        kernels={"r": Kernel("R", "/usr/bin/R", "R", ("r/4",), {"A": "b"})},
        tools={"digits": WebTool("DIGITS", ("digits",), port=5000)},
        containers=Containers("/usr/bin/apptainer", {"a": KernelImage("A", "/a.sif")}),
        umask="027",
    )
    assert parse(json.dumps(to_json(whole))) == whole


@pytest.mark.parametrize("umask", ["27a", "8", "00000", "١٢٣"])
def test_a_umask_is_octal(umask: str) -> None:
    with pytest.raises(InputError, match="umask: not an octal number"):
        parse(json.dumps({"environment": ENVIRONMENT, "umask": umask}))
