"""The commands of the how-to guides, run as they stand there.

`IN_A_SESSION` and `AS_ROOT` run a block as it is on the page, but for the words that a reader
replaces, too: addresses, names and folders. `TAKEN` says which other test takes a block's commands
from its page, and `CANNOT` why a block cannot run here.
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
from tests.pages import HOW_TOS, blocks, commands, replaced
from tests.servers.prometheus import TOKEN
from tests.visitor import Visitor, session_of

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
    after: str = ""
    """Commands that fail unless it has done what the page says."""


# What may not be verified here: the certificate of the tests' own authority.
_CURL = {"curl ": "curl --silent --show-error --fail --insecure "}
# The users' command of this instance.
_SIZE = {"portal size": f"/usr/local/bin/portal-{PREFIX} size"}
_STORAGE = (
    "--loads read --processes 2 --files 3 --size-mib 6 --other-seconds 1 --other-ramp 0 "
    "--repeats 1 --most-hits 0"
)
_JOB = "--wait --time=5 --output=/dev/null"
# Finished runs, as `portal size` reads them; tests/unit/sizing/test_command.py has more.
_MEASURED = """\
mkdir -p ~/how-to/training ~/how-to/storage
cat > ~/how-to/training/summary.json <<'END'
{"benchmark": "training", "figures": {"trainings": [
  {"images_per_second": 1600.0, "processes": 4}]}}
END
cat > ~/how-to/storage/summary.json <<'END'
{"benchmark": "storage", "figures": {"rates": [
  {"load": "read", "mounts": ["/mnt/a"], "clients": 1, "mb_per_second": 1250.0}]}}
END
"""
_FRESH = "rm -rf ~/how-to; "
IN_A_SESSION: Mapping[Key, Run] = {
    ("get-more-time.md", 0): Run(r'"deadline"', {"curl ": "curl --silent --show-error --fail "}),
    ("measure-inference.md", 0): Run(
        r"int8",
        {
            "--results ~/logs/measured-inference/one": "--results ~/how-to/one --model tiny "
            "--size 32 --batches 1 --seconds 0.05 --epochs 1 --digits 1300"
        },
        before=_FRESH,
    ),
    ("measure-storage.md", 0): Run(
        r"1 of 1: read, .* mb per second",
        {
            "--results ~/logs/": f"{_STORAGE} --results ~/how-to/",
            "/mnt/isilon1/users/you": "~/isilon/users/$USER",
            "--nodes=4": f"--nodes=2 --mem=1G {_JOB}",
        },
        before=_FRESH,
        after="test -s ~/how-to/run2/summary.json",
    ),
    ("measure-the-interconnect.md", 0): Run(
        r"",
        {
            "--nodes=4 --ntasks-per-node=4 --gres=gpu:4": f"--nodes=2 --mem=2500 {_JOB}",
            "--results ~/logs/": "--most 65536 --iterations 3 --repeats 1 --results ~/how-to/",
            "--processes 2,4": "--processes 2",
        },
        before=_FRESH,
        after="test -s ~/how-to/run1/summary.json -a -s ~/how-to/run2/summary.json",
    ),
    ("measure-the-whole-cluster.md", 0): Run(
        r"",
        {"~/logs": "~/how-to", "~/cluster-report": "~/how-to/report"},
        before=f"{_FRESH}python3 ~/templates/benchmarks/storage.py --results ~/how-to/storage "
        f"--mounts ~/isilon/users/$USER {_STORAGE}\n",
        after="grep -q '^## Storage' ~/how-to/report/README.md",
    ),
    ("measure-training.md", 0): Run(
        r"usage: scaling.py",
        {
            "--results ": "--epochs 1 --steps 2 --warmup 1 --runs 1 --batch 8 --size 32 "
            "--results ~/how-to/",
            "--models resnet50": "--models tiny",
            "--precisions fp32,bf16": "--precisions fp32",
        },
        before=_FRESH,
        after="test -s ~/how-to/run1/summary.json -a -s ~/how-to/run2/summary.json",
    ),
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
    ("size-storage.md", 1): Run(
        r"400 images/s x 0.115 MB",
        {**_SIZE, "~/logs/": "~/how-to/", "/RUN/": "/"},
        before=_MEASURED,
    ),
    ("size-storage.md", 2): Run(r"70 GPUs", _SIZE),
    ("use-containers.md", 0): Run(
        r"^Python 3",
        {"~/images/own.sif": "~/isilon/images/base.sif"},
    ),
}
AS_ROOT: Mapping[Key, Run] = {
    ("back-up-and-restore.md", 0): Run(
        r"", {"/root/": "FOLDER/", "portal backup": "PORTAL backup"}
    ),
    ("bring-the-real-mnist.md", 0): Run(
        r"now has MNIST",
        {"notebook_templates": "-B REPOSITORY/notebook_templates", "/mnt/isilon": "FOLDER"},
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
    # With archives of the same form as those that take an account.
    ("measure-inference.md", 1): Run(
        r"",
        {},
        before="mkdir -p made/ILSVRC2012_devkit_t12/data\n"
        "touch made/ILSVRC2012_val_00000001.JPEG made/ILSVRC2012_devkit_t12/data/meta.mat\n"
        "tar -cf ILSVRC2012_img_val.tar -C made ILSVRC2012_val_00000001.JPEG\n"
        "tar -czf ILSVRC2012_devkit_t12.tar.gz -C made ILSVRC2012_devkit_t12\n",
        after="test -e val/ILSVRC2012_val_00000001.JPEG -a -e ILSVRC2012_devkit_t12/data/meta.mat",
    ),
    ("monitor-the-portal.md", 0): Run(
        r"^prometheus prometheus 400",
        {" prometheus.token": f" {TOKEN}", "/etc/prometheus/": "FOLDER/"},
        after="stat -c '%U %G %a' FOLDER/portal.token",
    ),
    ("monitor-the-portal.md", 1): Run(
        r"^gpu_spawner_slurm_up ",
        {**_CURL, "/etc/prometheus/portal.token": str(TOKEN), "http://PORTAL:8000": "ADDRESS"},
    ),
    ("mount-the-nas.md", 0): Run(r"", {"NAME": USERS[0], "GROUP": GROUP}),
    # Where there is the hardware it would change something: nothing but a check, both times.
    ("provision-gpu-hosts.md", 0): Run(
        r"failed=0",
        {
            "deploy/up": "REPOSITORY/deploy/up",
            "~/site": "FOLDER/site",
            "compute1\n": "compute1 --check\n",
        },
        before="mkdir FOLDER/site; cat > FOLDER/site/hosts.yml <<'END'\n"
        "all: {hosts: {compute1: {ansible_connection: local}}, children: {nvidia: {hosts: "
        "{compute1: {}}}, infiniband: {hosts: {compute1: {}}}}}\nEND\n",
    ),
    ("size-storage.md", 0): Run(r"7,200 MB/s", {"portal size": "PORTAL size"}),
    ("size-storage.md", 2): Run(r"70 GPUs", {"portal size": "PORTAL size"}),
    # The path within this machine carries large frames.
    ("tune-the-network-to-the-nas.md", 0): Run(r"3 received", {"NAS": "127.0.0.1"}),
    # This machine's environments are only listed.
    ("upgrade.md", 0): Run(
        r"all that are unused: ", {"deploy/prune": "REPOSITORY/deploy/prune", "~/site": "test"}
    ),
    ("use-https.md", 0): Run(
        r"",
        {"/etc/data-scientist-portal": "FOLDER"},
        before="mkdir FOLDER/tls; echo key > privkey.pem; echo pair > fullchain.pem\n"
        "export RENEWED_LINEAGE=FOLDER\n",
        after="grep -qx key FOLDER/tls/portal.key && grep -qx pair FOLDER/tls/portal.crt",
    ),
    ("use-postgresql.md", 0): Run(
        r"^970 600",
        {"/etc/data-scientist-portal": "FOLDER/etc"},
        before="echo server:5432:portal:portal:secret > pgpass\n",
        after="stat -c '%u %a' FOLDER/etc/database.pgpass",
    ),
    ("use-https.md", 1): Run(r"^notAfter=", {"/var/lib/data-scientist-portal": STATE}),
}
# Of programs of the templates: tests of their own run them.
_PROGRAMS = "tests/integration/templates/test_how_to_programs.py"
TAKEN: Mapping[Key, str] = {
    ("add-a-standby.md", 0): "tests/site/test_standby.py",
    ("add-a-standby.md", 1): "tests/site/test_standby.py",
    ("attach-to-your-slurm.md", 1): "tests/deploy/test_attach.py",
    ("attach-to-your-slurm.md", 2): "tests/deploy/test_attach.py",
    ("attach-to-your-slurm.md", 3): "tests/debian/software.py",
    ("connect-with-ssh.md", 0): "tests/integration/session/test_ssh.py",
    ("connect-your-directory.md", 1): "tests/integration/authentication/test_machine_accounts.py",
    ("deploy-a-cluster.md", 1): "tests/site/conftest.py",
    ("deploy-a-cluster.md", 2): "tests/site/test_deployment.py",
    ("divide-a-model-with-jax.md", 0): _PROGRAMS,
    ("divide-a-model-with-jax.md", 1): _PROGRAMS,
    ("fine-tune-a-language-model.md", 1): _PROGRAMS,
    ("fine-tune-a-vision-transformer.md", 1): _PROGRAMS,
    ("install-without-network.md", 0): "tests/unit/deploy/programs/test_release.py",
    ("install-your-own-packages.md", 0): "tests/integration/session/test_own_environments.py",
    ("install-your-own-packages.md", 1): "tests/integration/session/test_own_environments.py",
    ("measure-the-network.md", 0): "tests/integration/measuring/test_network.py",
    ("measure-the-network.md", 1): "tests/integration/measuring/test_network.py",
    ("mount-the-nas.md", 2): "tests/deploy/test_nfs.py",
    ("offer-choices.md", 0): "tests/integration/options/test_limits.py",
    ("prepare-data.md", 1): _PROGRAMS,
    ("provision-gpu-hosts.md", 1): "tests/site/test_deployment.py",
    ("pull-images.md", 0): "tests/integration/images/test_images.py",
    ("run-your-own-program.md", 0): _PROGRAMS,
    ("search-for-hyper-parameters.md", 0): _PROGRAMS,
    ("see-where-time-goes.md", 0): _PROGRAMS,
    ("serve-a-model.md", 0): "tests/integration/session/test_model_server.py",
    ("serve-a-model.md", 1): "tests/integration/session/test_model_server.py",
    ("serve-a-model.md", 2): _PROGRAMS,
    ("train-on-a-table.md", 0): _PROGRAMS,
    ("train-on-several-nodes.md", 0): _PROGRAMS,
    ("train-with-lightning.md", 0): _PROGRAMS,
    ("try-the-tiers.md", 0): "tests/integration/measuring/test_tiering.py",
    ("use-the-spawner-alone.md", 0): "tests/deploy/test_spawner_alone.py",
    ("use-the-spawner-alone.md", 1): "tests/deploy/test_spawner_alone.py",
    ("use-the-spawner-alone.md", 2): "tests/deploy/test_spawner_alone.py",
}
CANNOT: Mapping[Key, str] = {
    ("add-a-web-tool.md", 0): "needs an image from NVIDIA's registry",
    # Those of `hf`: test_how_to_programs.py runs them as far as they come offline.
    ("fine-tune-a-language-model.md", 0): "needs Hugging Face, which is not a registry of packages",
    (
        "fine-tune-a-vision-transformer.md",
        0,
    ): "needs Hugging Face, which is not a registry of packages",
    ("install-without-network.md", 1): "fetches some hundred MB; a release is tried as it is made",
    ("measure-inference.md", 2): "needs torchvision's and timm's weights, which are in no registry",
    # Of these two, tests/deploy/test_nfs.py looks whether the units have these names.
    ("mount-the-nas.md", 1): "needs systemd and NFS in one kernel, as no test has",
    ("mount-the-nas.md", 3): "needs systemd and NFS in one kernel, as no test has",
    ("set-up-the-nas.md", 0): "needs Ansible's Galaxy, which is not a registry of packages",
    ("set-up-the-nas.md", 1): "needs the collection that block 0 gets, and a NAS with OneFS",
}


def listed() -> dict[Key, str]:
    """Return the commands of every page, by the number of their block."""
    return {
        (page.name, number): commands(block)
        for page in sorted(HOW_TOS.glob("*.md"))
        for number, block in enumerate(blocks(page, "console", "sh"))
    }


@pytest.fixture(scope="module")
def user(portal: Instance) -> Iterator[Visitor]:
    with session_of(portal, USERS[0]) as user:
        yield user


def test_each_block_is_run_or_it_is_said_why_it_cannot_be() -> None:
    tables = (IN_A_SESSION, AS_ROOT, TAKEN, CANNOT)
    assert set(listed()) == set().union(*tables)
    assert set(TAKEN).isdisjoint({*IN_A_SESSION, *AS_ROOT, *CANNOT})
    assert set(CANNOT).isdisjoint({*IN_A_SESSION, *AS_ROOT})


@pytest.mark.parametrize("key", TAKEN, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_test_takes_what_it_runs_from_the_page(key: Key) -> None:
    page, number = key
    text = (ROOT / TAKEN[key]).read_text(encoding="utf-8")
    # A block of the page, or all of them.
    assert f'"{page}", {number}' in text or f'"docs/how-to/{page}"' in text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", IN_A_SESSION, ids=lambda key: f"{key[0]}-{key[1]}")
def test_a_user_runs_it_in_a_session(user: Visitor, key: Key) -> None:
    run = IN_A_SESSION[key]
    block = replaced(listed()[key], run.replaced).replace("ADDRESS", user.instance.url)
    # As a terminal does it: with the modules there.
    argv = ["/bin/bash", "-lc", f"set -e\n{run.before}{block}\n{run.after}"]
    code = f"import json, subprocess; done = subprocess.run({argv!r}, **{HOW!r})\n{TELL}"
    status, said = json.loads(user.run(code, seconds=240))
    assert status == 0, said
    assert re.search(run.prints, said, re.MULTILINE), said


@pytest.mark.parametrize("key", AS_ROOT, ids=lambda key: f"{key[0]}-{key[1]}")
def test_an_administrator_runs_it(portal: Instance, tmp_path: Path, key: Key) -> None:
    run = AS_ROOT[key]
    block = f"{run.before}{replaced(listed()[key], run.replaced)}\n{run.after}"
    for word, other in {
        "FOLDER": str(tmp_path),
        "ADDRESS": portal.url,
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
