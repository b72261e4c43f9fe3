"""A machine that reaches mirrors of the registries, and nothing else, makes its environments.

In a network namespace without a way out. What the page says of the mirrors' files is done; all
else that this machine has set for pip, uv and npm is out of sight.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import offline
import pytest

from tests.instance import ROOT
from tests.pages import HOW_TOS

pytestmark = pytest.mark.long

LOCKS = ("deploy", "hub")
PORT = 8081
INSIDE = """
set -eu
work=$1 repository=$2 mirror=$3 python=$4 port=$5
ip link set lo up
mkdir -p "$work/etc" "$work/root"
mount -t tmpfs tmpfs "$work/etc"
mkdir "$work/etc/upper" "$work/etc/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$work/etc/upper,workdir=$work/etc/work" /etc
mount --bind "$work/root" /root
rm -rf /etc/xdg/pip /etc/npmrc
mkdir -p /etc/uv
cp "$work/uv.toml" /etc/uv/uv.toml
cp "$work/pip.conf" /etc/pip.conf
cp "$work/npmrc" /root/.npmrc
"$python" "$mirror" "$port" "$work/packages/python" "$work/packages/npm" > "$work/asked" &
server=$!
trap 'kill $server' EXIT
"$repository/deploy/venv" --root "$work/environments" --json hub proxy
"""


def files_of_the_page() -> dict[str, str]:
    """Return what the page writes into each file, for mirrors of this test."""
    page = (HOW_TOS / "install-without-network.md").read_text()
    mirror = f"http://127.0.0.1:{PORT}"
    url, default = re.findall(r"`(url = \S+)`, `(default = true)`", page)[0]
    registry = re.findall(r"`(registry=\S+)`", page)[0]
    assert "`/etc/pip.conf`: `index-url` in `[global]`" in page
    written = {
        "uv.toml": f"[[index]]\n{url}\n{default}\n",
        "pip.conf": f"[global]\nindex-url = {mirror}/simple\n",
        "npmrc": f"{registry}\n",
    }
    return {
        name: text.replace("https://mirror.example.org", mirror) for name, text in written.items()
    }


@pytest.mark.timeout(1200)
def test_environments_are_made_from_mirrors_alone(tmp_path: Path) -> None:
    for lock in LOCKS:
        offline.fetch_python(lock, tmp_path / "packages/python")
    # The hub's wheel has the extension of JupyterLab, which is built with it.
    for lock in offline.JAVASCRIPT:
        offline.fetch_javascript(lock, tmp_path / "packages/npm", tmp_path / "npm")
    for name, text in files_of_the_page().items():
        (tmp_path / name).write_text(text)
    mirror = ROOT / "tests/servers/package_mirror.py"
    argv = ["/usr/bin/unshare", "--net", "--mount", "--", "/bin/sh", "-c", INSIDE, "sh"]
    done = subprocess.run(
        [*argv, str(tmp_path), str(ROOT), str(mirror), sys.executable, str(PORT)],
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PORTAL_CACHE": str(tmp_path / "cache"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=900,
        check=False,
        text=True,
    )
    assert done.returncode == 0
    made = {name: Path(path) for name, path in json.loads(done.stdout)["environments"].items()}
    argv = [str(made["hub"] / "bin/python"), "-Ic", "import jupyterhub; print('imported')"]
    asked = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert asked.stdout == "imported\n"
    assert (made["proxy"] / "node_modules/configurable-http-proxy").is_dir()
    questions = (tmp_path / "asked").read_text()
    assert "GET /simple/jupyterhub/" in questions
    assert "GET /npm/configurable-http-proxy/-/" in questions
