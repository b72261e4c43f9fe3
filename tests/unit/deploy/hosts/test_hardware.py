"""What GPU hosts, InfiniBand hosts and others would get, by recorded words of the kernel.

No such hardware is here: a check of the roles shows what they would do, not that the packages work.
"""

import re
from pathlib import Path

import pytest
import yaml

from tests import roles
from tests.debian import roots

NEITHER = "pci:v00008086d00001533sv00008086sd00000001bc02sc00i00"
H100 = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"
NVSWITCH = "pci:v000010DEd000022A3sv000010DEsd00001796bc06sc80i00"
# A card's second function, for sound on its display.
SOUND = "pci:v000010DEd00002235sv000010DEsd0000145Abc04sc03i00"
A40 = "pci:v000010DEd00002235sv000010DEsd0000145Abc03sc02i00"
INFINIBAND = "pci:v000015B3d00001021sv000015B3sd00000041bc02sc07i00"
ROCE = "pci:v000015B3d0000101Dsv000015B3sd00000040bc02sc00i00"
MIRROR = {
    "name": "nvidia",
    "uris": ["https://mirror.example.org/cuda"],
    "suites": ["/"],
    "signed_by": "/usr/share/keyrings/nvidia.gpg",
}
NON_FREE = {
    "name": "non-free",
    "uris": ["https://mirror.example.org/debian"],
    "suites": ["bookworm"],
    "components": ["contrib", "non-free"],
}
EL = {"name": "nvidia", "baseurl": "https://mirror.example.org/el9", "gpgkey": "file:///etc/key"}
# What is on the bus, and what is set for the host.
HOSTS: dict[str, tuple[list[str], dict[str, object]]] = {
    "dgx": (
        [NEITHER, *[H100] * 8, *[NVSWITCH] * 4, *[INFINIBAND] * 8],
        {
            "nvidia_fabric_manager_packages": ["nvidia-fabricmanager"],
            "nvidia_repositories": [MIRROR],
        },
    ),
    "pair": ([NEITHER, A40, SOUND, A40, SOUND, ROCE], {"nvidia_repositories": [NON_FREE]}),
    "el": ([NEITHER, A40], {"system": "el-9", "family": "RedHat", "nvidia_repositories": [EL]}),
    "busless": ([], {}),
    "unmanaged": ([*[H100] * 8, *[NVSWITCH] * 4], {}),
    "apart": ([ROCE], {"infiniband_subnet_manager": True}),
    "manager": ([INFINIBAND], {"infiniband_subnet_manager": True}),
}
PACKAGES = {
    "nvidia": "(nvidia_packages if nvidia_gpus | int else [])",
    "infiniband": "(infiniband_wanted if infiniband_adapters | int else [])",
}


def of_system(name: str) -> dict[str, object]:
    said = roots.system(name)
    return {key: said[key] for key in ("packages_of", "packages_paths")}


def recorded(folder: Path, devices: list[str]) -> str:
    """Write down what a kernel shows of its bus; return the folder."""
    for number, device in enumerate(devices):
        place = folder / f"0000:{number:02x}:00.0"
        place.mkdir(parents=True)
        (place / "modalias").write_text(f"{device}\n")
    return str(folder)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a run says that changes nothing: of all hosts, to start Ansible once."""
    folder = tmp_path_factory.mktemp("hardware")
    hosts = {
        name: {
            "devices": recorded(folder / name, devices),
            **of_system(str(variables.get("system", "debian-12"))),
            "family": "Debian",
            **variables,
        }
        for name, (devices, variables) in HOSTS.items()
    }
    given: dict[str, object] = {}
    for role in PACKAGES:
        given |= yaml.safe_load((roles.ROLES / role / "defaults/main.yml").read_text())
    facts: dict[str, object] = {
        "os_family": "{{ family }}",
        "distribution": "Debian",
        "packages": {},
        # In the place of what the role says.
        "instance_pci_devices": "{{ devices }}",
        "instance_has_systemd": True,
        "cacheable": True,
    }
    tasks: list[dict[str, object]] = [
        {"set_fact": facts},
        {"include_role": {"name": "instance", "tasks_from": "devices"}},
    ]
    for role, wanted in PACKAGES.items():
        tasks += [
            {"include_role": {"name": role, "tasks_from": "validate", "public": True}},
            {"name": f"wanted of {role}", "debug": {"msg": f"{{{{ {wanted} | join(' ') }}}}"}},
        ]
    tasks.append({"include_role": {"name": "nvidia"}, "when": "nvidia_repositories | length > 0"})
    # A subnet manager would be started, for which systemd is asked.
    adapters = "infiniband_adapters | int > 0 and not infiniband_subnet_manager"
    installed = {"packages": "{{ dict(infiniband_wanted | zip(infiniband_wanted)) }}"}
    tasks += [
        {"set_fact": {**installed, "cacheable": True}, "when": adapters},
        {"include_role": {"name": "infiniband"}, "when": adapters},
    ]
    # Where the hardware is missing, all that roles do runs here.
    tasks += [
        {
            "include_role": {"name": role, "tasks_from": part},
            "when": "inventory_hostname == 'busless'",
        }
        for role in PACKAGES
        for part in ("main", "verify")
    ]
    # Its kernel has none of what is on the bus.
    tasks.append({"include_role": {"name": "infiniband", "tasks_from": "verify"}, "when": adapters})
    return roles.played(folder, hosts, given, tasks, "--check", "--diff")


def wanted(said: str, role: str, host: str) -> set[str]:
    _, _, rest = said.partition(f"TASK [wanted of {role}]")
    found = re.search(rf"^ok: \[{host}\] => \n +msg: (.*(?:\n +.*)*)", rest, re.M)
    assert found, said
    return set(found[1].strip("'").split())


def test_a_host_without_the_hardware_is_left_alone(said: str) -> None:
    recap = re.search(r"^busless +: ok=(\d+) +changed=0 +unreachable=0 +failed=0", said, re.M)
    assert recap, said
    assert int(recap[1]) > len(PACKAGES) * 5


DRIVER = {
    "linux-headers-amd64",
    "nvidia-kernel-dkms",
    "libcuda1",
    "nvidia-smi",
    "nvidia-persistenced",
    "nvidia-cuda-toolkit",
}


@pytest.mark.parametrize(
    ("host", "packages"),
    [
        ("dgx", DRIVER | {"nvidia-fabricmanager"}),
        ("pair", DRIVER),
        (
            "el",
            {"kmod-nvidia-open-dkms", "nvidia-driver-cuda", "nvidia-persistenced", "cuda-toolkit"},
        ),
        ("busless", set()),
        ("manager", set()),
    ],
)
def test_gpu_hosts_and_no_others_get_the_driver(said: str, host: str, packages: set[str]) -> None:
    assert wanted(said, "nvidia", host) == packages


@pytest.mark.parametrize(
    ("host", "tools"),
    [
        ("dgx", {"rdma-core", "perftest"}),
        ("pair", {"rdma-core", "perftest"}),
        ("manager", {"rdma-core", "perftest", "opensm"}),
        ("busless", set()),
    ],
)
def test_hosts_with_adapters_and_no_others_get_their_programs(
    said: str, host: str, tools: set[str]
) -> None:
    found = wanted(said, "infiniband", host)
    assert found >= tools
    assert bool(found) == bool(tools)
    assert ("opensm" in found) == ("opensm" in tools)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("unmanaged", "4 NVSwitches, without whose fabric manager"),
        ("apart", "which has no InfiniBand adapter"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_changes(
    said: str, host: str, words: str
) -> None:
    before, found, _ = said.partition("TASK [nvidia : Whether a driver runs")
    assert found
    assert set(roles.refusals(before)) == {"unmanaged", "apart"}
    assert words in " ".join(roles.refusals(before)[host].split())


@pytest.mark.parametrize(("host", "adapters"), [("dgx", 8), ("pair", 1)])
def test_a_host_that_got_all_is_told_that_no_port_is_active(
    said: str, host: str, adapters: int
) -> None:
    words = " ".join(roles.refusals(said)[host].split())
    assert f"{host} has {adapters} adapters and no active port (" in words


@pytest.mark.parametrize(
    ("host", "lines"),
    [
        (
            "dgx",
            [
                "Types: deb",
                "URIs: https://mirror.example.org/cuda",
                "Suites: /",
                "Signed-By: /usr/share/keyrings/nvidia.gpg",
            ],
        ),
        (
            "pair",
            [
                "Types: deb",
                "URIs: https://mirror.example.org/debian",
                "Suites: bookworm",
                "Components: contrib non-free",
            ],
        ),
        (
            "el",
            [
                "[nvidia]",
                "name=nvidia",
                "baseurl=https://mirror.example.org/el9",
                "gpgcheck=1",
                "gpgkey=file:///etc/key",
            ],
        ),
    ],
)
def test_a_package_source_is_written_as_its_system_reads_it(
    said: str, host: str, lines: list[str]
) -> None:
    # Hosts run side by side, so a host's answer does not follow what it has written.
    assert re.search(rf"^\s*changed: \[{host}\] => \(item=", said, re.M), said
    written = re.findall(r"@@\n\+#.*\n((?:\+.*\n)+)", said)
    assert [f"+{line}" for line in lines] in [text.splitlines() for text in written], said
