"""What the jobs of most users run in place of JupyterLab: the real entry, and hardly a server.

It reads its input, listens, speaks TLS, has slurmctld write its job and reports its port by the
real session's own code, in the real session's environment; then it answers every request with
nothing. 200 JupyterLabs on one machine would measure JupyterLab.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from dsportal.session import internal_tls, state_save
from dsportal.session.callback import open_socket, report_port
from dsportal.session.files.home import make_runtime_folder, remove_runtime_folder
from dsportal.session_schema import SessionInput, parse

_CALLBACK = "PORTAL_PORT_CALLBACK_URL"
_CHOICE = """\
#!{python} -I
import os, pwd, runpy, sys

sys.argv = sys.argv[:1]
if pwd.getpwuid(os.getuid()).pw_name in {real!r}:
    runpy.run_module("dsportal.session", run_name="__main__", alter_sys=True)
    sys.exit()
"""


def program(python: str, real: Collection[str]) -> str:
    """Return the text of a program: the real session for some users, this module for others."""
    choice = _CHOICE.format(python=python, real=sorted(real))
    return f"{choice}\n{Path(__file__).read_text(encoding='utf-8')}"


class _Nothing(RequestHandler):
    def get(self, *_path: str) -> None:
        """Answer as a Jupyter server whose version the hub looks at."""
        self.set_header("X-JupyterHub-Version", "6.1.1")
        self.finish({})


async def _serve(told: SessionInput) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    listener = open_socket()
    server = HTTPServer(
        Application([(r"/(.*)", _Nothing)]), ssl_options=internal_tls.server_context()
    )
    server.add_socket(listener)
    environment = told.environment
    await report_port(
        environment[_CALLBACK], environment["JUPYTERHUB_API_TOKEN"], listener.getsockname()[1]
    )
    await ended.wait()


def main() -> None:
    """Serve until Slurm ends the job."""
    told = parse(sys.stdin.read())
    job = os.environ["SLURM_JOB_ID"]
    os.environ["PORTAL_JOB_ID"] = job
    folder = make_runtime_folder(job)
    try:
        if told.certificate is not None:
            os.environ.update(internal_tls.install(told.certificate, folder))
        state_save.begin(told.slurm_bin_dir)
        asyncio.run(_serve(told))
    finally:
        remove_runtime_folder(folder)


if __name__ == "__main__":
    main()
