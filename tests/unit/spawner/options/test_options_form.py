"""The options form of one server: no JupyterHub, and a stand-in for the user's options."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest

from jupyterhub_gpu_slurm.errors import BadOption, OverLimit, SlurmError, SpawnerError
from jupyterhub_gpu_slurm.options.options_form import OptionsForm
from jupyterhub_gpu_slurm.options.session_options import SessionOptions

API_URL = "/hub/api/gpu-session/{what}/ada"
NOTE = "a note"


class Options:
    """Says how it was asked for the form, or fails with ``failure``."""

    def __init__(self) -> None:
        self.failure: SpawnerError | None = None
        self.asked: list[tuple[Mapping[str, str], str, str, float]] = []

    async def form(
        self, chosen: Mapping[str, str], note: str, api_url: str, interval: float
    ) -> str:
        if self.failure is not None:
            raise self.failure
        self.asked.append((chosen, note, api_url, interval))
        return "<the form>"


@pytest.fixture
def options() -> Options:
    return Options()


@pytest.fixture
def form(options: Options) -> OptionsForm:
    log = logging.getLogger("test")
    return OptionsForm(cast("SessionOptions", options), "ada", API_URL, 10.0, log)


def page(form: OptionsForm, last_options: Mapping[str, Any] | None = None) -> str:
    return asyncio.run(form.page(last_options or {}, NOTE))


def test_it_is_filled_in_with_what_was_chosen_last(form: OptionsForm, options: Options) -> None:
    assert page(form, {"gpus": 2}) == "<the form>"
    assert options.asked == [({"gpus": "2"}, NOTE, API_URL, 10.0)]


def test_options_that_no_longer_exist_fill_in_nothing(form: OptionsForm, options: Options) -> None:
    page(form, {"profile": "big"})
    assert options.asked[0][0] == {}


def test_a_link_fills_it_in_once_and_nothing_is_started(
    form: OptionsForm, options: Options
) -> None:
    form.fill_in({"gpus": ["1"]})
    page(form, {"gpus": 2})
    page(form, {"gpus": 2})
    (of_link, note, *_), (of_last, *_) = options.asked
    assert (of_link, of_last) == ({"gpus": "1"}, {"gpus": "2"})
    assert "Nothing has been started." in note


@pytest.mark.parametrize("query", [{"gpus": ["many"]}, {"gpus": ["1", "2"]}, {"cmd": ["sh"]}])
def test_a_link_with_a_mistake_fills_in_nothing(
    form: OptionsForm, options: Options, query: dict[str, list[str]]
) -> None:
    form.fill_in({"gpus": ["1"]})
    with pytest.raises(BadOption):
        form.fill_in(query)
    page(form)
    assert options.asked[0][0] == {}


@pytest.mark.parametrize("is_fault", [True, False])
def test_where_nothing_can_be_offered_it_says_why(
    form: OptionsForm, options: Options, caplog: pytest.LogCaptureFixture, is_fault: bool
) -> None:
    kind = SlurmError if is_fault else OverLimit
    options.failure = kind("Nothing to be had.", detail="of the log")
    shown = page(form)
    assert "Nothing to be had." in shown
    assert ("Try again in a minute" in shown) is is_fault
    assert ("No options form for ada: of the log" in caplog.text) is is_fault


def test_a_link_waits_until_the_form_can_be_shown(form: OptionsForm, options: Options) -> None:
    form.fill_in({"gpus": ["1"]})
    options.failure = SlurmError("Slurm does not answer.")
    page(form)
    options.failure = None
    page(form)
    assert options.asked[0][0] == {"gpus": "1"}
