"""The options form of one server: its values, and the message above it."""

import logging
from collections.abc import Mapping
from typing import Any

from jupyterhub_gpu_slurm.errors import OverLimit, Refusal, SlurmError
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.form import render as form
from jupyterhub_gpu_slurm.options.request import parse, single_values
from jupyterhub_gpu_slurm.options.session_options import SessionOptions


class OptionsForm:
    """Shows a user's options; its script asks ``api_url`` every ``interval`` seconds."""

    def __init__(
        self,
        options: SessionOptions,
        username: str,
        api_url: str,
        interval: float,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._options = options
        self._username = username
        self._api_url = api_url
        self._interval = interval
        self._log = log
        self._prefill: Mapping[str, str] | None = None

    async def page(self, last_options: Mapping[str, Any], ending: str) -> str:
        """Return it as HTML, or what stands in its place where nothing can be offered.

        A link fills it in, once; else the options that were chosen last do. ``ending`` says why the
        last session ended.
        """
        if self._prefill is None:
            chosen, note = _as_chosen(last_options), ending
        else:
            chosen = self._prefill
            note = words.LINK_NOTE
        try:
            page = await self._options.form(chosen, note, self._api_url, self._interval)
        except SlurmError as error:
            self._log.warning("No options form for %s: %s", self._username, error.detail)
            return form.render_unavailable(str(error))
        except OverLimit as error:
            return form.render_unavailable(str(error), is_fault=False)
        self._prefill = None
        return page

    def fill_in(self, query: Mapping[str, list[str]]) -> None:
        """Take what a link has for the form. Raises `BadOption`; then the link fills in nothing."""
        self._prefill = None
        values = single_values(query)
        parse(values)
        self._prefill = values


def _as_chosen(options: Mapping[str, Any]) -> Mapping[str, str]:
    try:
        return {key: f"{value}" for key, value in parse(options).as_json().items()}
    except Refusal:
        return {}
