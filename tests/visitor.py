"""A user at the portal, over plain HTTP: what a browser or a script of theirs would send."""

import copy
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx

from tests.instance import PASSWORD, Instance, trust
from tests.network.websocket import Websocket
from tests.waiting import until


@dataclass
class Visitor:
    """One user's cookies and requests, and one of the user's servers."""

    instance: Instance
    name: str
    server_name: str = ""
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = httpx.Client(
            base_url=self.instance.url, timeout=60, follow_redirects=True, verify=trust()
        )

    def at(self, server_name: str) -> "Visitor":
        """Return the same user, with the same login, at a named server."""
        other = copy.copy(self)
        other.server_name = server_name
        return other

    @property
    def _server_path(self) -> str:
        tail = f"servers/{self.server_name}" if self.server_name else "server"
        return f"/users/{self.name}/{tail}"

    @property
    def _session_path(self) -> str:
        return f"/user/{self.name}/{self.server_name}".rstrip("/")

    @property
    def session_url(self) -> str:
        """The address of the session, without a slash at its end."""
        return f"{self.instance.host_of(self.name)}{self._session_path}"

    def close(self) -> None:
        self.http.close()

    # --- login ---

    def xsrf(self, path: str = "/hub/") -> str:
        """Return the token that the hub set for its pages."""
        cookies = [c for c in self.http.cookies.jar if c.name == "_xsrf" and c.path == path]
        return str(cookies[0].value) if cookies else ""

    def log_in(self, password: str = PASSWORD) -> httpx.Response:
        """Send the login form; return the page that follows."""
        self.http.get("/hub/login")
        return self.http.post(
            "/hub/login",
            params={"next": "/hub/home"},
            data={"username": self.name, "password": password, "_xsrf": self.xsrf()},
        )

    # --- the hub's REST API ---

    def api(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Ask the hub's REST API as the page's scripts do: with cookies and the XSRF header."""
        headers = {"X-XSRFToken": self.xsrf(), "Referer": f"{self.instance.url}/hub/home"}
        return self.http.request(method, f"/hub/api{path}", headers=headers, **request)

    def server(self) -> dict[str, Any] | None:
        """Return the hub's record of this user's server, ``None`` if there is none."""
        answer = self.api("GET", f"/users/{self.name}")
        answer.raise_for_status()
        server = answer.json()["servers"].get(self.server_name)
        return dict(server) if server else None

    def start(self, **options: object) -> httpx.Response:
        """Ask for a session through the REST API."""
        return self.api("POST", self._server_path, json=options)

    def wait_until_ready(self, seconds: float = 90) -> None:
        """Wait until the hub says that the server is ready."""

        def is_ready() -> bool:
            server = self.server()
            if server is None:
                raise AssertionError("the server is gone while it was awaited")
            return bool(server["ready"])

        try:
            until(is_ready, seconds=seconds, what=f"the server of {self.name} is ready")
        except AssertionError as error:
            error.add_note(self.instance.cluster())
            raise

    def start_and_wait(self, **options: object) -> str:
        """Start a session; return its job's number when it is ready."""
        before = set(self.instance.jobs(user=self.name))
        answer = self.start(**options)
        assert answer.status_code in (201, 202), answer.text
        self.wait_until_ready()
        (job_id,) = set(self.instance.jobs(user=self.name)) - before
        return job_id

    def stop(self) -> None:
        """Stop the session and wait until the hub has forgotten it."""
        self.api("DELETE", self._server_path)
        until(lambda: self.server() is None, seconds=60, what=f"{self.name}'s server stopped")

    def note(self) -> str:
        """Return the text of the options page, with what it says about the last session."""
        return self.http.get(f"/hub/spawn/{self.name}/{self.server_name}".rstrip("/")).text

    def leave(self) -> None:
        """Stop the user's sessions, and forget the named ones."""
        all_of_them = {"include_stopped_servers": "1"}
        servers = self.api("GET", f"/users/{self.name}", params=all_of_them).json()["servers"]
        for name in servers:
            server = self.at(name)
            if server.server() is not None:
                server.stop()
            if name:
                self.api("DELETE", server._server_path, json={"remove": True})

    def token(self, **asked: object) -> str:
        """Make an API token of this user's, as a script would use; for all that the user may do."""
        wanted = {"note": "a test", **asked}
        answer = self.api("POST", f"/users/{self.name}/tokens", json=wanted)
        answer.raise_for_status()
        return str(answer.json()["token"])

    @cached_property
    def _authorization(self) -> dict[str, str]:
        """One token for all requests to sessions: each new one is made, kept and asked about."""
        return {"Authorization": f"token {self.token()}"}

    # --- the session ---

    def session(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Ask the session's Jupyter server, with a token of this user's."""
        return httpx.request(
            method,
            f"{self.session_url}{path}",
            headers=self._authorization,
            timeout=60,
            verify=trust(),
            **request,
        )

    def socket(self, path: str) -> Websocket:
        """Open a websocket to the session."""
        url = f"{self.session_url}{path}".replace("http", "ws", 1)
        return Websocket(url, self._authorization, trust())

    def open_kernel(self, *, kernel: str = "python3", **more: str) -> str:
        """Start a kernel that stays; return its name in the session."""
        started = self.session("POST", "/api/kernels", json={"name": kernel, **more})
        started.raise_for_status()
        return str(started.json()["id"])

    def run_in(
        self, kernel_id: str, code: str, *, seconds: float = 60, stderr: list[str] | None = None
    ) -> str:
        """Run code in a kernel that is there; return all that it wrote, errors too.

        What it wrote to standard error, which JupyterLab shows in red, is also added to ``stderr``.
        """
        with self.socket(f"/api/kernels/{kernel_id}/channels") as socket:
            return execute(socket, code, seconds, stderr)

    def switch_debugger_on(self, kernel_id: str) -> None:
        """Have a kernel's debugger begin, as JupyterLab does; see the Debug Adapter Protocol."""
        asked = {"adapterID": "", "linesStartAt1": True, "columnsStartAt1": True}
        with self.socket(f"/api/kernels/{kernel_id}/channels") as socket:
            for number, command in enumerate(("initialize", "attach"), start=1):
                request = {"type": "request", "seq": number, "command": command, "arguments": asked}
                ask(socket, "control", "debug_request", request)
                while (reply := json.loads(socket.recv(timeout=60)))["channel"] != "control":
                    pass
                assert reply["content"]["success"], reply

    def run(self, code: str, *, kernel: str = "python3", seconds: float = 60) -> str:
        """Run code in a new kernel; return all that it wrote, errors too."""
        kernel_id = self.open_kernel(kernel=kernel)
        try:
            return self.run_in(kernel_id, code, seconds=seconds)
        finally:
            self.session("DELETE", f"/api/kernels/{kernel_id}")

    def port(self) -> int:
        """Return the port of the session's server."""
        code = "import os; print(os.environ['JUPYTERHUB_SERVICE_URL'].split(':')[2].split('/')[0])"
        return int(self.run(code))

    def type_in_terminal(
        self,
        line: str,
        awaited: str,
        *,
        answers: Mapping[str, str] | None = None,
        seconds: float = 30,
    ) -> str:
        """Type a line into a new terminal; return the screen once ``awaited`` is on it.

        ``answers``: what is typed once certain words are on the screen.
        """
        waiting = dict(answers or {})
        name = self.session("POST", "/api/terminals").json()["name"]
        screen = ""
        with self.socket(f"/terminals/websocket/{name}") as socket:
            socket.send(json.dumps(["stdin", f"{line}\r"]))
            while awaited not in screen:
                kind, *rest = json.loads(socket.recv(timeout=seconds))
                if kind == "stdout":
                    screen += rest[0]
                for words in [words for words in waiting if words in screen]:
                    socket.send(json.dumps(["stdin", waiting.pop(words)]))
        self.session("DELETE", f"/api/terminals/{name}")
        return screen


def ask(socket: Websocket, channel: str, kind: str, content: dict[str, Any]) -> str:
    """Send a kernel a message; return its number."""
    message_id = uuid.uuid4().hex
    header = {
        "msg_id": message_id,
        "msg_type": kind,
        "username": "",
        "session": uuid.uuid4().hex,
        "version": "5.3",
    }
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    socket.send(json.dumps({"channel": channel, **message}))
    return message_id


def execute(socket: Websocket, code: str, seconds: float, stderr: list[str] | None = None) -> str:
    """Send code over a kernel's websocket; return its output when the kernel is idle again.

    What it wrote to standard error is also added to ``stderr``.
    """
    content = {"code": code, "silent": False, "store_history": False, "stop_on_error": True}
    message_id = ask(socket, "shell", "execute_request", content)
    written = ""
    while True:
        received = socket.recv(timeout=seconds)
        if not isinstance(received, str):
            continue  # a picture of a widget
        message = json.loads(received)
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "stream":
            written += content["text"]
            if stderr is not None and content["name"] == "stderr":
                stderr.append(content["text"])
        elif kind == "error":
            written += "\n".join(content["traceback"])
        elif kind == "execute_result":
            written += content["data"].get("text/plain", "")
        elif kind == "status" and message["parent_header"].get("msg_id") == message_id:
            if content["execution_state"] == "idle":
                return written
        elif kind == "status" and content["execution_state"] in ("restarting", "dead"):
            # What explains the death follows shortly.
            written += f"[kernel {content['execution_state']}]"
            try:
                while "memory" not in written:
                    late = json.loads(socket.recv(timeout=5))
                    if late["header"]["msg_type"] == "stream":
                        written += late["content"]["text"]
            except TimeoutError:
                pass
            return written


@contextmanager
def session_of(portal: Instance, name: str, **options: object) -> Iterator[Visitor]:
    """Give a user with a session, without GPUs unless asked; it is stopped at the end."""
    visitor = Visitor(portal, name)
    visitor.log_in().raise_for_status()
    try:
        visitor.leave()
        visitor.start_and_wait(**{"gpus": 0, **options})
        yield visitor
    finally:
        visitor.leave()
        visitor.close()
