"""Values of an inventory that ansible-vault has encrypted."""

import json
import os
import pty
import subprocess
from pathlib import Path

import bootstrap
import pytest

from tests.instance import ROOT

PASSWORD = "correct horse"
# A name that is refused, by a sentence that has it.
NAME = "Not A Name"
REFUSAL = f"instance_name is {NAME}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An inventory of this machine, without groups, named in a vault; its password beside it."""
    folder = tmp_path_factory.mktemp("vault")
    variables = folder / "site/group_vars/all"
    variables.mkdir(parents=True)
    hosts = {"all": {"hosts": {"head": {"ansible_connection": "local"}}}}
    (folder / "site/hosts.yml").write_text(json.dumps(hosts))
    (variables / "main.yml").write_text('instance_name: "{{ vault_name }}"\n')
    encrypted = variables / "vault.yml"
    encrypted.write_text(f"vault_name: {NAME}\n")
    (folder / "password").write_text(PASSWORD)
    program = bootstrap.deploy_environment() / "bin/ansible-vault"
    argv = [str(program), "encrypt", f"--vault-password-file={folder}/password", str(encrypted)]
    subprocess.run(argv, check=True, capture_output=True, env=os.environ | {"LC_ALL": "C.UTF-8"})
    assert NAME not in encrypted.read_text()
    return folder


def validate(site: Path, *options: str) -> str:
    """Return what is said to somebody who has no terminal."""
    done = subprocess.run(
        [str(ROOT / "deploy/up"), str(site / "site"), "--stage=validate", *options],
        cwd=site,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode != 0
    return " ".join(done.stdout.split())


def test_it_is_read_with_the_password_of_a_file(site: Path) -> None:
    assert REFUSAL in validate(site, "--vault-password-file", "password")


def test_it_is_read_with_the_password_that_is_typed(site: Path) -> None:
    ours, theirs = pty.openpty()
    argv = ["/usr/bin/setsid", "--ctty", str(ROOT / "deploy/up"), str(site / "site")]
    with subprocess.Popen(
        [*argv, "--stage=validate", "--ask-vault-pass"], stdin=theirs, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        shown = ""
        while not shown.endswith("Vault password: "):
            shown += os.read(ours, 1000).decode()
        os.write(ours, f"{PASSWORD}\n".encode())
        while True:
            try:
                shown += os.read(ours, 10000).decode(errors="replace")
            except OSError:  # Nobody has the other end any more.
                break
    os.close(ours)
    assert running.returncode != 0
    assert REFUSAL in " ".join(shown.split())
    assert PASSWORD not in shown


def test_a_wrong_password_is_said(site: Path) -> None:
    (site / "wrong").write_text("wrong")
    said = validate(site, "--vault-password-file=wrong")
    assert "Decryption failed (no vault secrets were found that could decrypt)" in said
    assert REFUSAL not in said


def test_no_terminal_is_said(site: Path) -> None:
    assert "no terminal at which --ask-vault-pass" in validate(site, "--ask-vault-pass")
