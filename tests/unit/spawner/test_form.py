"""The form as JupyterHub asks its spawner for it: shown, posted, and filled in by a link."""

import asyncio
from typing import Any

import pytest
from jupyterhub.spawner import SpawnException

from jupyterhub_gpu_slurm import hub_api
from jupyterhub_gpu_slurm.options.words import LINK_NOTE
from tests.unit.spawner.slurm_stand_in import StandIn


def test_a_posted_form_becomes_options(spawner: Any) -> None:
    assert spawner.options_from_form({"gpus": ["2"], "hours": ["1.5"]}) == {"gpus": 2, "hours": 1.5}


def test_a_posted_mistake_is_named(spawner: Any) -> None:
    with pytest.raises(SpawnException) as raised:
        spawner.options_from_form({"gpus": ["many"]})
    assert raised.value.status_code == 400
    assert "'many'" in raised.value.jupyterhub_message


def test_a_link_shows_the_form_filled_in_and_starts_nothing(spawner: Any, slurm: StandIn) -> None:
    with pytest.raises(SpawnException) as raised:
        spawner.options_from_query({"gpus": ["3"], "hours": ["0.25"]})
    assert (raised.value.status_code, raised.value.jupyterhub_message) == (200, "")
    page = asyncio.run(spawner.render_form())
    assert LINK_NOTE in page
    assert 'value="0.25"' in page
    assert slurm.orders == []


def test_a_link_with_a_mistake_says_so(spawner: Any) -> None:
    with pytest.raises(SpawnException) as raised:
        spawner.options_from_query({"gpus": ["-1"]})
    assert raised.value.status_code == 400


def test_its_script_asks_the_hub_for_this_server(spawner: Any) -> None:
    page = asyncio.run(spawner.render_form())
    assert '"/hub/api/gpu-session/{what}/ada"' in page


@pytest.mark.parametrize(
    ("server", "path"),
    [("", "/gpu-session/{what}/a%2Fb%40c"), ("x y", "/gpu-session/{what}/a%2Fb%40c/x%20y")],
)
def test_names_in_the_forms_addresses_are_quoted(server: str, path: str) -> None:
    assert hub_api.path_for_form("a/b@c", server) == path
