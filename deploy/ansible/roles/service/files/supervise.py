"""Make supervisor run services as they are defined; run by supervisor's own Python.

The one argument is JSON: the folders, and a list of definitions as the role's defaults describe
them. Starts supervisord when it does not answer, starts what does not run, restarts what is defined
otherwise than it runs, waits until all of it runs, and prints what it changed. Nothing printed
means that nothing changed.

supervisord starts nothing by itself: what an interrupted run has left would start before its
settings are there.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

SUPERVISORD = """\
[supervisord]
nodaemon = false
logfile = {logs}/supervisord.log
logfile_maxbytes = {log_bytes}
logfile_backups = {log_backups}
pidfile = {run}/supervisord.pid
childlogdir = {logs}
directory = /
umask = 022
minfds = 1024

[unix_http_server]
file = {run}/supervisor.sock
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl = unix://{run}/supervisor.sock

[include]
files = {folder}/services/*.conf
"""

PROGRAM = """\
; {description}
[program:{name}]
command = {command}
environment = {environment}
directory = {directory}
autostart = false
autorestart = true
startsecs = 1
startretries = 5
stopsignal = {stop_signal}
stopwaitsecs = {stop_seconds}
stopasgroup = false
killasgroup = false
redirect_stderr = true
stdout_logfile = {log}
stdout_logfile_maxbytes = {log_bytes}
stdout_logfile_backups = {log_backups}
"""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START_SECONDS = 60
Definition = dict[str, Any]


def changed(text: str) -> None:
    """Tell Ansible."""
    print(text, flush=True)


def ensure_file(path: Path, text: str) -> None:
    """Write the file when it says something else."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.replace(path)
    changed(f"wrote {path}")


def ensure_runtime_folder(definition: Definition) -> None:
    """Make the service's folder below /run; it is gone after a boot."""
    wanted = definition.get("runtime_folder")
    if not wanted:
        return
    path, mode = Path("/run") / wanted["name"], int(wanted["mode"], 8)
    user = definition.get("user", "root")
    path.mkdir(parents=True, exist_ok=True)
    shutil.chown(path, user, definition.get("group", user))
    path.chmod(mode)


def command(definition: Definition, watchdog: str) -> list[str]:
    """Return the service's argv, behind what changes its user and ties it to supervisord."""
    words: list[str] = []
    if limits := definition.get("limits"):
        given = (f"--{name}={value}" for name, value in sorted(limits.items()))
        words += ["/usr/bin/prlimit", *given, "--"]
    user = definition.get("user", "root")
    if user != "root":
        group = definition.get("group", user)
        words += ["/usr/bin/setpriv", f"--reuid={user}", f"--regid={group}", "--init-groups"]
        capabilities = definition.get("capabilities", [])
        if capabilities:
            wanted = ",".join(["-all", *(f"+{name}" for name in capabilities)])
            words += [f"--inh-caps={wanted}", f"--ambient-caps={wanted}"]
    # The service ends with supervisord, however that ends. Last, as a change of user resets it.
    words += ["/usr/bin/setpriv", f"--pdeathsig={definition.get('stop_signal', 'TERM')}", "--"]
    secrets = definition.get("environment_file")
    if secrets:
        words += ["/bin/sh", "-c", 'set -a; . "$1"; shift; exec "$@"', "sh", secrets]
    probe = definition.get("probe")
    if probe:
        words += [watchdog, probe["address"], str(probe["seconds"])]
    return words + [str(word) for word in definition["command"]]


def program(definition: Definition, given: dict[str, Any]) -> str:
    """Return the service's section of supervisor's settings."""
    reason = f"{zlib.crc32(definition.get('restart_on', '').encode()):08x}"
    environment = {"PATH": PATH, "LANG": "C.UTF-8", "PORTAL_RESTART_ON": reason}
    environment |= definition.get("environment", {})
    pairs = (f'{key}="{value}"' for key, value in sorted(environment.items()))
    return PROGRAM.format(
        name=definition["name"],
        description=definition["description"],
        command=shlex.join(command(definition, given["watchdog"])).replace("%", "%%"),
        environment=",".join(pairs).replace("%", "%%"),
        directory=definition.get("directory", "/"),
        stop_signal=definition.get("stop_signal", "TERM"),
        stop_seconds=definition.get("stop_seconds", 10),
        log=Path(given["logs"]) / f"{definition['name']}.log",
        log_bytes=given["log_bytes"],
        log_backups=given["log_backups"],
    )


def connect(run: Path) -> Any:
    """Return supervisor's interface on its socket."""
    transport = SupervisorTransport(None, None, f"unix://{run}/supervisor.sock")
    return ServerProxy("http://127.0.0.1", transport=transport).supervisor


def answers(run: Path) -> bool:
    """Tell whether supervisord is there; a connection that failed once is of no more use."""
    try:
        return bool(connect(run).getState()["statename"] == "RUNNING")
    except (OSError, HTTPException, Fault):
        return False


def ensure_supervisor(run: Path, settings: Path) -> None:
    """Start supervisord, with none of our own environment, when it does not answer."""
    if answers(run):
        return
    argv = [sys.executable, "-m", "supervisor.supervisord", "-c", str(settings)]
    environment = {"PATH": PATH, "LANG": "C.UTF-8"}
    subprocess.run(argv, env=environment, cwd="/", check=True, stdin=subprocess.DEVNULL, timeout=60)
    changed("started supervisord")
    deadline = time.monotonic() + START_SECONDS
    while not answers(run):
        if time.monotonic() > deadline:
            sys.exit("supervisord was started and does not answer")
        time.sleep(0.1)


def apply(supervisor: Any) -> None:
    """Let supervisord take over what the files say."""
    ((added, altered, removed),) = supervisor.reloadConfig()
    for name in altered + removed:
        supervisor.stopProcessGroup(name)
        supervisor.removeProcessGroup(name)
    for name in added + altered:
        supervisor.addProcessGroup(name)


def start(supervisor: Any, names: list[str], logs: Path) -> None:
    """Start what does not run, and wait until all do; what gives up is started again once."""
    started: set[str] = set()
    revived: set[str] = set()
    deadline = time.monotonic() + START_SECONDS
    waiting = list(names)
    while waiting:
        for name in list(waiting):
            state = supervisor.getProcessInfo(name)["statename"]
            if state == "RUNNING":
                waiting.remove(name)
            elif state in ("FATAL", "STOPPED", "EXITED", "UNKNOWN"):
                if name in revived:
                    sys.exit(f"{name} ends as soon as it is started:\n{tail(logs, name)}")
                (revived if name in started else started).add(name)
                supervisor.startProcess(name, False)
                changed(f"started {name}")
        if waiting and time.monotonic() > deadline:
            sys.exit(f"{waiting[0]} does not stay up:\n{tail(logs, waiting[0])}")
        if waiting:
            time.sleep(0.1)


def tail(logs: Path, name: str) -> str:
    """Return the last lines of a service's log."""
    log = logs / f"{name}.log"
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else ""


def main() -> None:
    """Write the settings, then let supervisord follow them."""
    given = json.loads(sys.argv[1])
    folder, run, logs = (Path(given[key]) for key in ("folder", "run", "logs"))
    (folder / "services").mkdir(mode=0o755, parents=True, exist_ok=True)
    settings = folder / "supervisord.conf"
    ensure_file(settings, SUPERVISORD.format(**given))
    definitions: list[Definition] = given["definitions"]
    for definition in definitions:
        ensure_runtime_folder(definition)
        path = folder / "services" / f"{definition['name']}.conf"
        ensure_file(path, program(definition, given))
    ensure_supervisor(run, settings)
    supervisor = connect(run)
    apply(supervisor)
    start(supervisor, [definition["name"] for definition in definitions], logs)


main()
