"""What JupyterLab's defaults become: light and dark, and the extensions that a site wants."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from jupyterlab_server.config import get_page_config

from dsportal.session.page.extensions import EXTENSIONS, page_settings, server_parts
from dsportal.session.page.lab_defaults import write
from dsportal.session.upstream.hub_login import DISABLED_PLUGINS
from dsportal.settings.session import ExtensionName

THEMES = "@jupyterlab/apputils-extension:themes"


def test_it_follows_the_system_unless_told_otherwise(tmp_path: Path) -> None:
    for follows in (True, False):
        overrides = json.loads((write(tmp_path, [], follows) / "overrides.json").read_text())
        assert overrides.get(THEMES) == ({"adaptive-theme": True} if follows else None)


def test_a_notebooks_toolbar_runs_all(tmp_path: Path) -> None:
    overrides = json.loads((write(tmp_path, [], False) / "overrides.json").read_text())
    items = overrides["@jupyterlab/notebook-extension:panel"]["toolbar"]
    assert {item["name"]: item.get("command") for item in items} == {
        "restart-and-run": None,
        "run-all": "notebook:run-all-cells",
    }


def test_the_setting_and_the_session_know_the_same_extensions() -> None:
    assert set(get_args(ExtensionName)) == set(EXTENSIONS)


def test_an_await_outside_a_function_is_no_mistake_in_a_notebook(tmp_path: Path) -> None:
    # What pyflakes 3.2 says of it, as python-lsp-server passes it on.
    said = "'yield' outside function"
    overrides = json.loads((write(tmp_path, ["lsp"], False) / "overrides.json").read_text())
    ignored = overrides["@jupyter-lsp/jupyterlab-lsp:diagnostics"]["ignoreMessagesPatterns"]
    assert any(re.search(pattern, said) for pattern in ignored)
    for mistake in ("'return' outside function", "undefined name 'yield'", "invalid syntax"):
        assert not any(re.search(pattern, mistake) for pattern in ignored)


@pytest.mark.parametrize("wanted", [(), ("lsp",), tuple(EXTENSIONS)])
def test_an_unwanted_extension_switches_nothing_of_jupyterlab_off(
    tmp_path: Path, wanted: tuple[str, ...]
) -> None:
    installed = tmp_path / "labextensions"
    for name, extension in EXTENSIONS.items():
        package = installed / extension.page / "package.json"
        package.parent.mkdir(parents=True)
        metadata = {"disabledExtensions": [f"core:{name}"], "_build": {"load": "remote.js"}}
        package.write_text(
            json.dumps({"name": extension.page, "version": "1.0", "jupyterlab": metadata})
        )
    folder = write(tmp_path, wanted, False)
    off = get_page_config([str(installed)], str(folder))["disabledExtensions"]
    for name, extension in EXTENSIONS.items():
        assert (extension.page in off) is (name not in wanted)
        assert (f"core:{name}" in off) is (name in wanted)
        for plugin in extension.of_lab:
            assert (plugin in off) is (name not in wanted)
            assert plugin not in DISABLED_PLUGINS
    assert server_parts(wanted) == [
        EXTENSIONS[name].server for name in wanted if EXTENSIONS[name].server
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as they are written
def test_the_page_knows_early_what_the_language_servers_part_will_say(tmp_path: Path) -> None:
    from jupyter_lsp.paths import normalized_uri

    (tmp_path / "link").symlink_to(tmp_path / "jörg s", target_is_directory=True)
    (tmp_path / "jörg s").mkdir()
    home = tmp_path / "link"
    assert page_settings(["lsp"], home) == {
        "rootUri": normalized_uri(str(home)),
        "virtualDocumentsUri": normalized_uri(home / ".virtual_documents"),
    }
    assert page_settings(["git"], home) == {}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_one_that_is_left_out_is_neither_in_the_page_nor_in_the_server(
    tmp_path: Path, name: str
) -> None:
    extension = EXTENSIONS[name]
    for wanted, is_on in (([one for one in EXTENSIONS if one != name], False), ([name], True)):
        folder = write(tmp_path, wanted, False)
        off = json.loads((folder / "page_config.json").read_text())["disabledExtensions"]
        overrides = json.loads((folder / "overrides.json").read_text())
        assert {part in off for part in (extension.page, *extension.of_lab)} == {not is_on}
        assert {plugin in overrides for plugin in extension.defaults} <= {is_on}
        assert (extension.server in server_parts(wanted)) is (is_on and bool(extension.server))
