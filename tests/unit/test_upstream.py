"""What is patched of other people's code is still the code that the patch was written for.

Each sum is that of a function's source. One that differs after an update says: read what has
changed, see whether the patch is still needed and still fits, then note the new sum.
"""

import ast
import json
import re
import subprocess
import sys

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
    "dsportal/hub/patches/database_outage.py": {
        "jupyterhub.handlers.base:BaseHandler.prepare": "e39bd2f5e081",
        "jupyterhub.orm:new_session_factory": "24cdc508a76a",
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
        "jupyterhub.log:log_request": "2cabe0099e0e",
        "tornado.web:RequestHandler.log_exception": "3f42543117dc",
    },
    "dsportal/hub/patches/second_start.py": {
        "jupyterhub.handlers.pages:SpawnHandler._post": "6b3aa12f3de7",
    },
    "dsportal/hub/patches/session_tokens.py": {
        "jupyterhub.apihandlers.users:UserTokenAPIHandler": "9ec419cfc3c4",
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
    "dsportal/session/upstream/slow_imports.py": {
        "jupyterlab.commands:get_app_version": "106aed9570d6",
    },
}

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


def test_what_is_patched_has_not_changed_upstream() -> None:
    places = json.dumps([place for patched in PATCHED.values() for place in patched])
    argv = [sys.executable, "-c", SUMS, places]
    sums = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    found = {file: {place: sums[place] for place in patched} for file, patched in PATCHED.items()}
    assert found == PATCHED


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
    assert patches <= set(PATCHED)
