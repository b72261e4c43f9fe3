"""How the deployment asks what it has just set up."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tests import roles

STAGE = roles.ROLES.parent / "stages/verify.yml"


class Portal(BaseHTTPRequestHandler):
    """Says that it is there."""

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_the_portal_is_not_asked_through_a_proxy_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens at the proxy's port: without it, the answer comes."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    role = tmp_path / "roles/asking/tasks"
    role.mkdir(parents=True)
    with HTTPServer(("127.0.0.1", 0), Portal) as server:
        asked = {"url": f"http://127.0.0.1:{server.server_port}/", "status_code": 204}
        role.joinpath("verify.yml").write_text(yaml.safe_dump([{"ansible.builtin.uri": asked}]))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        play = yaml.safe_load(STAGE.read_text())[0]
        said = roles.played(
            tmp_path,
            {"here": {}},
            {},
            [{"include_role": {"name": "asking", "tasks_from": "verify"}}],
            module_defaults=play.get("module_defaults", {}),
        )
        server.shutdown()
    assert "failed=0" in said, said
