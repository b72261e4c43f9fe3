"""The commands of the how-to guides, run as they stand there.

`IN_A_SESSION` and `AS_ROOT` run a block as it is on the page, but for the words that a reader
replaces, too: addresses, names and folders. `ELSEWHERE` says of every other block which test runs
its program, or why it cannot run here.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.instance import PREFIX, ROOT, USERS, Instance
from tests.pages import blocks
from tests.visitor import Visitor, session_of

PAGES = ROOT / "docs/how-to"
ETC = f"/etc/data-scientist-portal-{PREFIX}"
STATE = f"/var/lib/data-scientist-portal-{PREFIX}"
GROUP = f"{PREFIX}-data-scientists"
HOW = {"capture_output": True, "text": True, "cwd": "/"}
TELL = "print(json.dumps([done.returncode, done.stdout + done.stderr]))"
Key = tuple[str, int]


@dataclass(frozen=True)
class Run:
    """What a reader replaces in a block, and what it prints."""

    prints: str
    replaced: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    """Commands that make what the page takes for granted."""


# What may not be verified here: the certificate of the tests' own authority.
_CURL = {"curl ": "curl --silent --show-error --fail --insecure "}
# The users' command of this instance.
_SIZE = {"portal size": f"/usr/local/bin/portal-{PREFIX} size"}
IN_A_SESSION: Mapping[Key, Run] = {
    ("get-more-time.md", 0): Run(r'"deadline"', {"curl ": "curl --silent --show-error --fail "}),
    ("prepare-data.md", 0): Run(
        r"1024|6 images",
        {"--shards 1024": "--shards 2"},
        before="module load pytorch; rm -rf ~/pictures ~/shards\n"
        "python - <<'END'\n"
        "from pathlib import Path\n"
        "from PIL import Image\n"
        "for label in 'ab':\n"
        "    folder = Path.home() / 'pictures/train' / label\n"
        "    folder.mkdir(parents=True)\n"
        "    for number in range(3):\n"
        "        Image.new('RGB', (40, 30), (number * 80, 0, 0)).save(folder / f'{number}.jpg')\n"
        "END\n",
    ),
    ("see-the-cluster.md", 0): Run(
        r'"partitions"',
        {**_CURL, "$TOKEN": "$JUPYTERHUB_API_TOKEN", "https://portal.example": "ADDRESS"},
    ),
    ("size-storage.md", 0): Run(r"7,200 MB/s", _SIZE),
    ("size-storage.md", 2): Run(r"70 GPUs", _SIZE),
}
AS_ROOT: Mapping[Key, Run] = {
    ("back-up-and-restore.md", 0): Run(
        r"", {"/root/": "FOLDER/", "portal backup": "PORTAL backup"}
    ),
    ("check-with-doctor.md", 0): Run(r"^\d+ ok", {"portal doctor": "PORTAL doctor || true"}),
    ("attach-to-your-slurm.md", 0): Run(r"", {"~/site": "FOLDER/site"}),
    # Of a deployment only the stage that reads all settings.
    ("connect-your-directory.md", 0): Run(
        r"failed=0",
        {
            "~/site --": "FOLDER/site --stage validate --",
            "~/": "FOLDER/",
            "deploy/venv": "REPOSITORY/deploy/venv",
            "deploy/up": "REPOSITORY/deploy/up",
        },
        before="mkdir -p FOLDER/site/group_vars/all\n"
        "echo 'all: {hosts: {head: {ansible_connection: local}}}' > FOLDER/site/hosts.yml\n"
        "echo 'vault_directory_password: secret' > FOLDER/site/group_vars/all/vault.yml\n"
        "echo 'instance_first_password: \"{{ vault_directory_password }}\"' "
        "> FOLDER/site/group_vars/all/main.yml\n"
        "(umask 077; echo correct horse > FOLDER/vault-password)\n",
    ),
    ("deploy-a-cluster.md", 0): Run(r"", {"~/site": "FOLDER/site"}),
    ("mount-the-nas.md", 0): Run(r"", {"NAME": USERS[0], "GROUP": GROUP}),
    ("size-storage.md", 0): Run(r"7,200 MB/s", {"portal size": "PORTAL size"}),
    ("size-storage.md", 2): Run(r"70 GPUs", {"portal size": "PORTAL size"}),
    ("use-https.md", 1): Run(r"^notAfter=", {"/var/lib/data-scientist-portal": STATE}),
}
ELSEWHERE: Mapping[Key, str] = {
    ("connect-with-ssh.md", 0): "tests/integration/session/test_ssh.py",
    ("connect-your-directory.md", 1): "tests/integration/authentication/test_directory.py",
    ("attach-to-your-slurm.md", 1): "tests/deploy/test_attach.py",
    ("attach-to-your-slurm.md", 2): "tests/deploy/test_attach.py",
    ("deploy-a-cluster.md", 1): "tests/site/test_deployment.py",
    ("deploy-a-cluster.md", 2): "tests/site/test_deployment.py",
    ("install-without-network.md", 0): "deploy/release does it in a network of its own",
    ("install-without-network.md", 1): "fetches some hundred MB; a release is tried as it is made",
    ("install-your-own-packages.md", 0): "tests/integration/session/test_own_environments.py",
    ("install-your-own-packages.md", 1): "needs a site with micromamba and conda's channels",
    ("measure-inference.md", 0): "tests/integration/measuring/test_inference.py",
    ("measure-inference.md", 1): "needs ImageNet's archives, which take an account",
    ("measure-inference.md", 2): "needs torchvision's and timm's weights, which are in no registry",
    ("add-a-web-tool.md", 0): "needs an image from NVIDIA's registry",
    ("bring-the-real-mnist.md", 0): "tests/notebooks/test_fetch_mnist.py",
    ("measure-storage.md", 0): "tests/integration/measuring/test_storage.py",
    ("measure-the-interconnect.md", 0): "tests/integration/measuring/test_interconnect.py",
    ("measure-the-network.md", 0): "tests/integration/measuring/test_network.py",
    ("measure-the-whole-cluster.md", 0): "tests/unit/templates/test_cluster_report.py",
    ("measure-training.md", 0): "tests/integration/measuring/test_training.py",
    ("monitor-the-portal.md", 0): "tests/integration/administration/test_monitoring_role.py",
    ("monitor-the-portal.md", 1): "tests/integration/administration/test_monitoring.py",
    ("mount-the-nas.md", 1): "needs mount units of systemd and an NFS server",
    ("mount-the-nas.md", 2): "needs mount units of systemd and an NFS server",
    ("mount-the-nas.md", 3): "needs mount units of systemd and an NFS server",
    ("prepare-data.md", 1): "tests/notebooks/test_training_on_shards.py",
    ("offer-choices.md", 0): "tests/integration/options/test_accounts.py",
    ("provision-gpu-hosts.md", 0): "tests/unit/deploy/test_hardware.py",
    ("provision-gpu-hosts.md", 1): "tests/site/test_deployment.py",
    ("pull-images.md", 0): "tests/integration/images/test_images.py",
    ("set-up-the-nas.md", 0): "needs Ansible's Galaxy, which is not a registry of packages",
    ("set-up-the-nas.md", 1): "needs a NAS with OneFS",
    ("try-the-tiers.md", 0): "tests/unit/templates/test_tiering.py",
    ("tune-the-network-to-the-nas.md", 0): "needs a NAS behind a path that carries large frames",
    ("size-storage.md", 1): "tests/unit/sizing/test_command.py",
    ("divide-a-model-with-jax.md", 0): "tests/notebooks/test_jax_sharding.py",
    ("divide-a-model-with-jax.md", 1): "tests/notebooks/test_jax_keras.py",
    ("fine-tune-a-language-model.md", 0): "needs Hugging Face, which is not a registry of packages",
    ("fine-tune-a-language-model.md", 1): "tests/notebooks/test_language.py",
    (
        "fine-tune-a-vision-transformer.md",
        0,
    ): "needs Hugging Face, which is no registry of packages",
    ("fine-tune-a-vision-transformer.md", 1): "tests/notebooks/test_vision.py",
    ("search-for-hyper-parameters.md", 0): "tests/notebooks/test_sweep.py",
    ("serve-a-model.md", 0): "tests/integration/session/test_model_server.py",
    ("serve-a-model.md", 1): "tests/integration/session/test_model_server.py",
    ("serve-a-model.md", 2): "tests/notebooks/test_serving.py",
    ("see-where-time-goes.md", 0): "tests/notebooks/test_profiling.py",
    ("train-on-a-table.md", 0): "tests/notebooks/test_tables.py",
    ("run-your-own-program.md", 0): "tests/notebooks/test_minimal.py",
    ("train-on-several-nodes.md", 0): "tests/notebooks/test_distributed.py",
    ("train-with-lightning.md", 0): "tests/notebooks/test_lightning.py",
    ("train-with-lightning.md", 1): "tests/notebooks/test_lightning_jobs.py",
    ("use-containers.md", 0): "tests/integration/images/test_own_image.py",
    ("use-https.md", 0): "needs certbot and a name that the world knows",
    ("use-the-spawner-alone.md", 0): "tests/deploy/test_spawner_alone.py",
    ("use-the-spawner-alone.md", 1): "tests/deploy/test_spawner_alone.py",
    ("use-the-spawner-alone.md", 2): "tests/deploy/test_spawner_alone.py",
}


def listed() -> dict[Key, str]:
    """Return the commands of every page, by the number of their block."""
    return {
        (page.name, number): commands(block)
        for page in sorted(PAGES.glob("*.md"))
        for number, block in enumerate(blocks(page, "console", "sh"))
    }


def commands(block: str) -> str:
    """Return what is typed: with a prompt only the lines that have one."""
    lines = [line.strip() for line in block.splitlines()]
    typed = [line[2:] for line in lines if re.match(r"[$#] \S", line)]
    # Without one a line that begins with # is a comment.
    return (
        "\n".join(typed if lines[0] == f"{lines[0][0]} {typed[0]}" else lines) if typed else block
    )


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0]) as user:
        yield user


def replaced(block: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        assert word in block, word
        block = block.replace(word, other)
    return block


def test_each_block_is_run_or_it_is_said_where() -> None:
    assert set(listed()) == {*IN_A_SESSION, *AS_ROOT, *ELSEWHERE}
    tests = [place for place in ELSEWHERE.values() if place.startswith("tests/")]
    assert [place for place in tests if not (ROOT / place).exists()] == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", IN_A_SESSION, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_user_runs_it_in_a_session(user: Visitor, key: Key) -> None:
    run = IN_A_SESSION[key]
    block = replaced(listed()[key], run.replaced).replace("ADDRESS", user.instance.url)
    # As a terminal does it: with the modules there.
    argv = ["/bin/bash", "-lc", f"set -e\n{run.before}{block}"]
    code = f"import json, subprocess; done = subprocess.run({argv!r}, **{HOW!r})\n{TELL}"
    status, said = json.loads(user.run(code, seconds=240))
    assert status == 0, said
    assert re.search(run.prints, said), said


@pytest.mark.parametrize("key", AS_ROOT, ids=lambda key: f"{key[0]}-{key[1]}")
def test_an_administrator_runs_it(portal: Instance, tmp_path: Path, key: Key) -> None:
    run = AS_ROOT[key]
    block = run.before + replaced(listed()[key], run.replaced)
    for word, other in {
        "FOLDER": str(tmp_path),
        "PORTAL": f"/usr/local/sbin/portal-{PREFIX}",
        "REPOSITORY": str(ROOT),
        "deploy/ansible": str(ROOT / "deploy/ansible"),
    }.items():
        block = block.replace(word, shlex.quote(other))
    done = subprocess.run(
        ["/bin/bash", "-ec", block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert re.search(run.prints, said, re.MULTILINE), said
