import json
import subprocess
import sys

from tests.checkout import PACKAGES


def python(program: str) -> str:
    """Run a program in a fresh interpreter that sees this checkout's packages."""
    given = f"import sys; sys.path[:0] = {PACKAGES!r}\n{program}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", given], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_server_starts_without_the_slow_modules() -> None:
    loaded = python(
        "import dsportal.session.server\n"
        "slow = {'rfc3987_syntax', 'lark', 'sqlalchemy', 'alembic', 'aiohttp', 'requests',\n"
        "        'jupyterhub.orm', 'jupyterhub.handlers', 'nbconvert', 'IPython', 'ipykernel',\n"
        "        'jupyter_server_proxy', 'notebook', 'jupyter_lsp', 'pynvml', 'httpx'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_the_cluster_pages_service_holds_nothing_of_the_hubs_database() -> None:
    loaded = python(
        "import dsportal.cluster.__main__\n"
        "print(sorted({'sqlalchemy', 'alembic', 'jupyterhub.orm'} & set(sys.modules)))"
    )
    assert loaded == "[]"


def test_the_server_starts_no_other_process() -> None:
    python(
        "import subprocess\n"
        "def refuse(*args, **kwargs): raise AssertionError(args)\n"
        "subprocess.Popen.__init__ = refuse\n"
        "import dsportal.session.server"
    )


def test_a_stand_in_becomes_the_real_module_when_used() -> None:
    # Each is reached through the module that holds the stand-in.
    uses = {
        "jupyterhub.scopes.sa.__version__[:2]": "2.",
        "jupyterhub.scopes.orm.User.__name__": "User",
        "jupyterhub.utils.aiohttp.ClientSession.__name__": "ClientSession",
    }
    found = python(
        "import dsportal.session.server\n"
        "import json, jupyterhub.scopes, jupyterhub.utils\n"
        f"print(json.dumps([{', '.join(uses)}]))"
    )
    assert dict(zip(uses, json.loads(found), strict=True)) == uses


def test_what_is_imported_later_is_real() -> None:
    name = python(
        "import dsportal.session.server\n"
        "from jupyterhub.httpclient import fetch\n"
        "from jupyterhub.handlers.pages import HealthCheckHandler\n"
        "from jupyterlab.extensions.pypi import PyPIExtensionManager\n"
        "import sqlalchemy.exc\n"
        "print(fetch.__module__, HealthCheckHandler.__module__, sqlalchemy.exc.__name__)\n"
        "print(PyPIExtensionManager.__module__)"
    )
    assert name == (
        "jupyterhub.httpclient jupyterhub.handlers.pages sqlalchemy.exc\njupyterlab.extensions.pypi"
    )


def test_the_lab_knows_its_version() -> None:
    assert (
        python(
            "import dsportal.session.server, jupyterlab.labapp, importlib.metadata\n"
            "print(jupyterlab.labapp.app_version == importlib.metadata.version('jupyterlab'))"
        )
        == "True"
    )
