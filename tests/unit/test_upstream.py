"""What is changed of other people's code is still the code that the change was written for.

Each sum is that of a function's source. One that differs after an update says: read what has
changed, see whether the change is still needed and still fits, then note the new sum.

What upstream documents as a place for others' code needs no sum: handlers' own methods, traits and
their defaults, JupyterHub's authenticators and spawners, Jupyter's managers of contents and kernel
specs, kernel provisioners, exporters. Nor does what a test sees from outside: that the exporter of
Slurm's figures does not say Python's version (``slurm_exporter/test_answers.py``, of wsgiref).
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import bootstrap

from tests.checkout import ROOT

_SINGLE_USER = "jupyterhub.singleuser.extension:JupyterHubSingleUser"
PATCHED = {
    "dsportal/hub/patches/access_audit.py": {
        "jupyterhub.apihandlers.auth:OAuthAuthorizeHandler.post": "28d65e3802af",
        "jupyterhub.apihandlers.auth:OAuthAuthorizeHandler._complete_login": "f4bfeb83eb62",
    },
    "dsportal/hub/patches/admin_role.py": {
        "jupyterhub.roles:get_default_roles": "5a1a46de4fe3",
    },
    "dsportal/hub/patches/api_hardening.py": {
        "jupyterhub.apihandlers.auth:OAuthTokenHandler.post": "6fafd9c2f37e",
        "jupyterhub.apihandlers.base:APIHandler.get_json_body": "1db1b9543415",
        "jupyterhub.apihandlers.users:UserAPIHandler.delete": "4471bb7f6590",
        "jupyterhub.apihandlers.users:UserAPIHandler.patch": "38479466b485",
        "jupyterhub.apihandlers.users:UserServerAPIHandler": "fff16db4e388",
        "tornado.web:Application.find_handler": "d93d26c5435e",
    },
    "dsportal/hub/patches/user_lookups.py": {
        "jupyterhub.handlers.base:BaseHandler._user_for_cookie": "75e6f158a88a",
        "jupyterhub.orm:User": "aae5d6f099a0",
    },
    "dsportal/hub/patches/client_secrets.py": {
        "jupyterhub.oauth.provider:JupyterHubOAuthServer.add_client": "37e7d04b6eb9",
        "jupyterhub.utils:hash_token": "6c060a32115f",
    },
    "dsportal/hub/patches/garbage.py": {
        "jupyterhub.app:JupyterHub.start": "0a8db2676f52",
    },
    "dsportal/hub/patches/database_outage.py": {
        "jupyterhub.handlers.base:BaseHandler.prepare": "e39bd2f5e081",
        "jupyterhub.orm:new_session_factory": "24cdc508a76a",
        "jupyterhub.orm:register_ping_connection": "3358d330aae6",
    },
    "dsportal/hub/patches/gate.py": {
        "jupyterhub.handlers.base:BaseHandler.set_login_cookie": "5ae95b7003f9",
        "jupyterhub.handlers.base:BaseHandler.clear_login_cookie": "8e8263b9fb47",
    },
    "dsportal/hub/patches/host_names.py": {
        "jupyterhub.handlers.base:BaseHandler.prepare": "e39bd2f5e081",
    },
    "dsportal/hub/patches/connection_limits.py": {
        "jupyterhub.app:JupyterHub.start": "0a8db2676f52",
        "tornado.httpserver:HTTPServer.initialize": "96e880b7deca",
        "tornado.tcpserver:TCPServer.listen": "eaa03ea55a12",
    },
    "dsportal/hub/patches/interrupted_stop.py": {
        "jupyterhub.apihandlers.users:UserServerAPIHandler.delete": "89e4db7e9a97",
    },
    "dsportal/hub/patches/managed_services.py": {
        "jupyterhub.app:JupyterHub.start_service": "22d72797a633",
        "jupyterhub.services.service:Service.start": "286137a12d04",
        "jupyterhub.services.service:_ServiceSpawner": "90a14aea46af",
        "jupyterhub.spawner:Spawner.create_certs": "024ff77050c0",
    },
    "dsportal/hub/patches/next_url.py": {
        "jupyterhub.handlers.base:BaseHandler.get_next_url": "75669b79b5f1",
    },
    "dsportal/hub/patches/request_log.py": {
        "jupyterhub._xsrf_utils:_needs_check_xsrf": "eb7950a40013",
        "jupyterhub.log:log_request": "2cabe0099e0e",
        "tornado.web:RequestHandler.log_exception": "3f42543117dc",
    },
    "dsportal/hub/patches/second_start.py": {
        "jupyterhub.handlers.pages:SpawnHandler._post": "6b3aa12f3de7",
        "jupyterhub.handlers.pages:SpawnHandler._render_form": "55c899190462",
    },
    "dsportal/hub/patches/session_tokens.py": {
        "jupyterhub.apihandlers.users:UserTokenAPIHandler": "9ec419cfc3c4",
    },
    "dsportal/hub/patches/shared_tls.py": {
        "jupyterhub.utils:make_ssl_context": "f97c6ad619f5",
        # What the culler's process has in its place: dsportal/culler.
        "jupyterhub_idle_culler:make_ssl_context": "bad625b952fd",
    },
    "dsportal/session/upstream/child_output.py": {
        "ipykernel.iostream:IOPubThread": "52a0adcd2281",
    },
    "dsportal/session/upstream/code_formatter.py": {
        "jupyterlab_code_formatter.formatters:RFormatter.importable.fget": "f9e509ec444a",
        "jupyterlab_code_formatter.handlers:FormattersAPIHandler.get": "87bd7007d72d",
    },
    "dsportal/session/upstream/debug_adapter.py": {
        "debugpy.adapter.__main__:main": "596ba6e0d418",
        "debugpy.adapter.clients:Client.attach_request": "7d7078922d85",
        "debugpy.adapter.clients:Client.report_sockets": "993bd087cad2",
        "debugpy.adapter.servers:Connection": "87a09d823754",
    },
    "dsportal/session/upstream/debugger.py": {
        "ipykernel.debugger:DebugpyClient": "0acaefdaea5d",
        "ipykernel.debugger:Debugger.attach": "438563edce69",
        "ipykernel.debugger:Debugger.start": "84e9e3bb2879",
        "ipykernel.compiler:get_file_name": "9986d54225b6",
        "ipykernel.compiler:get_tmp_directory": "cd9dda709b42",
        "pydevd:PyDB.connect": "fd48a2fbcfe4",
        "pydevd:_locked_settrace": "a09e07bef410",
        "_pydev_bundle.pydev_monkey:_on_forked_process": "477db9c92a3c",
    },
    "dsportal/session/upstream/hub_login.py": {
        f"{_SINGLE_USER}.check_hub_version": "1665ef6bd3c9",
        f"{_SINGLE_USER}.keep_activity_updated": "d9208a29cdc9",
    },
    "dsportal/session/upstream/jupyter_server.py": {
        "jupyter_server.base.handlers:JupyterHandler.get_json_body": "20339aa18c95",
        "jupyter_server.base.handlers:PublicStaticFileHandler": "e2c717fc985b",
        "jupyterlab_server.licenses_handler:LicensesHandler.finish": "a484a720e976",
    },
    "dsportal/session/upstream/pip_magic.py": {
        "IPython.core.magics.packaging:PackagingMagics.pip": "30f0c96de287",
    },
    "dsportal/session/upstream/search.py": {
        "jupyterlab_search_replace.handlers:RouteHandler": "0132bf8e1f6b",
        "jupyterlab_search_replace.handlers:setup_handlers": "2c70490836cc",
        "jupyterlab_search_replace.search_engine:SearchEngine": "3d1c99067cc2",
    },
    "dsportal/session/upstream/streamed.py": {
        "jupyter_server_proxy.handlers:ProxyHandler._proxy_buffered": "0a624ae6bd30",
        "jupyter_server_proxy.handlers:ProxyHandler._proxy_progressive": "489e2010c42d",
    },
    "dsportal/session/upstream/labapp.py": {
        "jupyterlab.commands:get_app_version": "106aed9570d6",
    },
}
"""Of the two folders of patches."""
OVERRIDDEN = {
    "dsportal/timers.py": {
        "tornado.ioloop:IOLoop.time": "b3660edd1f52",
        "tornado.ioloop:PeriodicCallback": "4cd6e5330ae7",
        "tornado.platform.asyncio:BaseAsyncIOLoop.call_at": "b0abd3187e6c",
    },
    "dsportal/authentication/admission.py": {
        "jupyterhub.handlers.base:BaseHandler.refresh_auth": "becef46cd8a4",
    },
    "dsportal/authentication/connection.py": {
        "ldap3.core.tls:Tls.wrap_socket": "428733b595fe",
    },
    "dsportal/hub/handlers.py": {
        "jupyterhub.app:JupyterHub.init_handlers": "78667c3b11d3",
    },
    "dsportal/hub/pages/home.py": {
        "jupyterhub.handlers.base:BaseHandler.render_template": "a824ccb6f5bb",
        "jupyterhub.handlers.pages:HomeHandler.get": "8321b7eb6b5a",
    },
    "dsportal/hub/pages/logout.py": {
        "jupyterhub.handlers.login:LogoutHandler": "db239a694b5f",
    },
    "dsportal/hub/postgresql.py": {
        "psycopg:Connection.wait": "602ce5e47fca",
    },
    "dsportal/hub/proxy.py": {
        "jupyterhub.proxy:Proxy.check_routes": "c94ce45851f7",
    },
    "dsportal/hub/pages/start_again.py": {
        "jupyterhub.handlers.base:BaseHandler.render_template": "a824ccb6f5bb",
        "jupyterhub.handlers.pages:SpawnHandler._get_pending_url": "4c4f1096c3ce",
        "jupyterhub.handlers.pages:SpawnHandler._post": "6b3aa12f3de7",
    },
    "dsportal/request_limits.py": {
        "jupyterhub.services.auth:_ExpiringDict": "b671f04bb402",
    },
    "dsportal/session/files/contents.py": {
        "jupyter_server.services.contents.fileio:FileManagerMixin.atomic_writing": "5898b82145d9",
        "jupyter_server.services.contents.fileio:_simple_writing": "2cfd13fed1c5",
        "jupyter_server.services.contents.filemanager:FileContentsManager._dir_model": (
            "e929aafbf5ff"
        ),
    },
    "dsportal/session/files/signatures.py": {
        "nbformat.sign:SQLiteSignatureStore.check_signature": "e9517fef6f65",
        "nbformat.sign:SQLiteSignatureStore.store_signature": "c4508a44fc02",
    },
    "dsportal/session/files/static.py": {
        "jupyter_server.base.handlers:AuthenticatedFileHandler.validate_absolute_path": (
            "db825916fe12"
        ),
        "jupyter_server.services.contents.filecheckpoints:FileCheckpoints.checkpoint_path": (
            "e063c07d2c62"
        ),
    },
    "dsportal/session/files/working_folders.py": {
        "jupyter_server.services.kernels.kernelmanager:MappingKernelManager._async_start_kernel": (
            "22075cde1d16"
        ),
        "jupyter_server.services.kernels.kernelmanager:"
        "MappingKernelManager._async_restart_kernel": "feff9b98a59f",
        "jupyter_server_terminals.api_handlers:TerminalRootHandler.post": "60cd20b2807a",
    },
    "dsportal/session/server.py": {
        "jupyter_server.serverapp:ServerApp._cleanup": "db56a0ec4417",
        "jupyter_server.serverapp:ServerApp._signal_stop": "8eecf3937608",
        "jupyter_server.serverapp:ServerApp.init_httpserver": "d289769f63f6",
        "jupyter_server.serverapp:ServerApp.init_webapp": "2ce2a8fe5218",
    },
    "dsportal/session/usage/idle.py": {
        # `_track_activity`, as in the other handlers that a page asks by itself.
        "jupyter_server.base.handlers:APIHandler.update_api_activity": "d27ff6751cdb",
    },
}
"""Of classes outside those folders that take the place of others, or rely on what is private."""
IN_ANSIBLE = {
    "ansible_mitogen.affinity:Policy": "68d919c716af",
    "ansible_mitogen.process:common_setup": "66eb5b6444eb",
    "ansible_mitogen.strategy:wrap_worker__run": "6dee014ca74d",
}
"""``deploy/ansible/plugins/strategy/one_process.py``: the policy that pins processes to cores."""
IN_THE_PROXY = {
    "handleApiRequest": "24d8bcc32a0c",
    "handleProxy": "ab50bd18e8ed",
    "handleProxyWeb": "e2d08e667c89",
    "handleProxyWs": "d8c0d8cd1606",
    "targetForReq": "36ba9edd6629",
}
"""``proxy.mjs``: methods of configurable-http-proxy's class."""

# In a process of its own: others of our tests patch.
SUMS = """
import hashlib, importlib, inspect, json, sys
from operator import attrgetter
sums = {}
for place in json.loads(sys.argv[1]):
    module, _, name = place.partition(":")
    source = inspect.getsource(attrgetter(name)(importlib.import_module(module)))
    sums[place] = hashlib.sha256(source.encode()).hexdigest()[:12]
print(json.dumps(sums))
"""


# As proxy.mjs finds them.
SUMS_OF_THE_PROXY = """
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const [environment, ...names] = process.argv.slice(1);
const file = createRequire(`${environment}/`).resolve("configurable-http-proxy/lib/configproxy.js");
const { ConfigurableProxy } = await import(pathToFileURL(file));
const sum = (name) => createHash("sha256").update(`${ConfigurableProxy.prototype[name]}`);
const sums = names.map((name) => [name, sum(name).digest("hex").slice(0, 12)]);
console.log(JSON.stringify(Object.fromEntries(sums)));
"""
# proxy.mjs says in the same way which name a session's certificate must have.
REQUEST_BY_TLS = """
import http from "node:http";
import https from "node:https";
import { Socket } from "node:net";
https.Agent.prototype.addRequest = function (request, options, ...rest) {
  const { hostname, host, port, path } = options;
  options.servername = "expected.session.internal";
  console.log(JSON.stringify({ address: hostname ?? host, port: Number(port), path }));
  return http.Agent.prototype.addRequest.call(this, request, options, ...rest);
};
const agent = new https.Agent({ keepAlive: true });
agent.createConnection = ({ servername }) => {
  console.log(JSON.stringify(servername));
  return new Socket();
};
https.request("https://127.0.0.1:4443/user/ann/lab", { agent }).on("error", () => {});
"""


def answer(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, check=True, text=True).stdout


def sums(python: str | Path, names: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = json.loads(answer(python, "-c", SUMS, json.dumps([*names])))
    return found


def node(program: str, *given: str | Path) -> str:
    return answer("/usr/bin/node", "--input-type=module", "--eval", program, *given)


def test_what_is_patched_or_overridden_has_not_changed_upstream() -> None:
    changed = PATCHED | OVERRIDDEN
    found = sums(sys.executable, (name for expected in changed.values() for name in expected))
    assert {file: {name: found[name] for name in of} for file, of in changed.items()} == changed


def test_what_keeps_ansible_from_pinning_processes_has_not_changed() -> None:
    python = bootstrap.deploy_environment() / "bin/python"
    assert sums(python, IN_ANSIBLE) == IN_ANSIBLE


def test_what_our_proxy_overrides_has_not_changed() -> None:
    environment, _ = bootstrap.environment("proxy", bootstrap.CACHE / "environments")
    assert json.loads(node(SUMS_OF_THE_PROXY, environment, *IN_THE_PROXY)) == IN_THE_PROXY


def test_node_asks_for_the_name_that_is_set_where_its_agent_takes_a_request() -> None:
    assert [json.loads(line) for line in node(REQUEST_BY_TLS).splitlines()] == [
        {"address": "127.0.0.1", "port": 4443, "path": "/user/ann/lab"},
        "expected.session.internal",
    ]


def test_each_patch_says_with_which_versions_it_was_tried() -> None:
    heads = {
        file: ast.get_docstring(ast.parse((ROOT / "portal" / file).read_text())) for file in PATCHED
    }
    assert [
        file for file, head in heads.items() if not re.search(r"Tried with \w+ \d", head or "")
    ] == []


def test_each_patch_has_a_place_here() -> None:
    portal = ROOT / "portal"
    folders = ("dsportal/hub/patches", "dsportal/session/upstream")
    files = [file for folder in folders for file in (portal / folder).glob("*.py")]
    patches = {str(file.relative_to(portal)) for file in files if file.name != "__init__.py"}
    assert patches == set(PATCHED)


def test_what_is_overridden_is_outside_the_folders_of_patches() -> None:
    assert [file for file in OVERRIDDEN if not (ROOT / "portal" / file).is_file()] == []
    assert set(OVERRIDDEN) & set(PATCHED) == set()
