"""The options page of a spawner: what a user is offered, and what the user's answer becomes."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from jupyterhub.spawner import SpawnException
from traitlets import default

from jupyterhub_gpu_slurm import hub_api, options, script
from jupyterhub_gpu_slurm.availability import Availability
from jupyterhub_gpu_slurm.errors import (
    OverLimit,
    Refusal,
    SessionEnded,
    SlurmError,
    SpawnerError,
    UnfitImage,
)
from jupyterhub_gpu_slurm.forecast import Forecast
from jupyterhub_gpu_slurm.form import render as form
from jupyterhub_gpu_slurm.form.render import Live
from jupyterhub_gpu_slurm.offer import limits_for
from jupyterhub_gpu_slurm.policy import AcceptedRequest, Limits, accept, holding_in_words, left
from jupyterhub_gpu_slurm.reservation import Reservation
from jupyterhub_gpu_slurm.slurm.acting import SUDO_SECONDS, account_unavailable
from jupyterhub_gpu_slurm.unix_groups import groups_of

_IMAGE_SECONDS = 15.0


class OptionsPage(Reservation):
    """Offers what the cluster and the policy give, and checks what comes back."""

    # Why the last session of a server ended, for its form. Not on the instance: JupyterHub makes
    # a new spawner after each stop.
    _endings: ClassVar[dict[str, str]] = {}

    _prefill: Mapping[str, str] | None = None
    _known_groups: Collection[str] = ()

    @default("options_form")
    def _default_options_form(self) -> Any:
        return type(self).render_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Any:
        return self.read_form

    async def render_form(self) -> str:
        """Return the options form for this user: what JupyterHub calls ``options_form``."""
        try:
            limits = await self._limits()
            holding = self._held_by_others(await self._interrupted())
            offered = left(limits, holding)
        except SlurmError as error:
            self.log.warning("No options form for %s: %s", self.user.name, error.detail)
            return form.render_unavailable(str(error))
        except OverLimit as error:
            return form.render_unavailable(str(error), is_fault=False)
        prefill, self._prefill = self._prefill, None
        chosen = prefill if prefill is not None else self._last_options()
        note = self._endings.get(self._log_name, "")
        if prefill is not None:
            note = "The link that you followed filled in this form. Nothing has been started."
        note = f"{note} {holding_in_words(limits, holding)}".strip()
        return form.render(
            offered,
            self._shape,
            self._defaults,
            chosen,
            note,
            live=Live(
                await self.availability(offered), self._form_api_url(), self.cluster_interval
            ),
        )

    def _form_api_url(self) -> str:
        """Return where the form's script asks; ``{what}`` stands for what it asks for."""
        server = f"/{quote(self.name, safe='')}" if self.name else ""
        path = f"/{quote(self.user.name, safe='')}{server}"
        return f"{self.hub.base_url}api{hub_api.PATH}/{{what}}{path}"

    async def availability(self, limits: Limits | None = None) -> tuple[Availability, ...]:
        """Return what the partitions that are open to the user have free.

        Raises `SlurmError`, `OverLimit`.
        """
        limits = limits or await self._limits()
        counted = self._slurm.free.of(await self._slurm.nodes.cluster())
        return tuple(counted[limit.name] for limit in limits.partitions if limit.name in counted)

    async def forecast(self, fields: Mapping[str, list[str]]) -> Forecast:
        """Return when what a form asks for would start. Nothing is reserved or submitted.

        Raises `BadOption`, `SlurmError`.
        """
        request = options.parse(options.single_values(fields))
        try:
            holding = self._held_by_others(await self._interrupted())
            accepted = accept(request, await self._limits(), self._shape, self._defaults, holding)
        except OverLimit as error:
            return Forecast("never", why=str(error))
        name = script.job_name(self.hub_mark, self.user.name, self.name)
        program = script.SessionProgram(self.session_python, {})
        has = self._slurm.free.of(await self._slurm.nodes.cluster()).get(accepted.partition)
        return await self._slurm.forecasts.forecast(
            self.user.name,
            script.render(name, accepted, program),
            is_large_enough=has is not None
            and has.is_large_enough(accepted.resources.gpus, accepted.gpu_type),
        )

    def read_form(self, fields: Mapping[str, list[str]]) -> dict[str, int | float | str]:
        """Read the posted form, strictly: what JupyterHub calls ``options_from_form``."""
        try:
            return options.parse(options.single_values(fields)).as_json()
        except SpawnerError as error:
            raise self._shown(error) from error

    def options_from_query(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        """Let a link fill in the form; it never starts a job.

        JupyterHub asks here what to start when a link has options. Raising makes it show the form,
        with these words above it.
        """
        try:
            self._prefill = options.single_values(query)
            options.parse(self._prefill)
        except SpawnerError as error:
            self._prefill = None
            raise self._shown(error) from error
        raise _for_the_page("", reason="link", log_message="a link filled in the form", status=200)

    def delete_forever(self) -> None:
        """Forget a named server that its user has deleted."""
        self._endings.pop(self._log_name, None)

    async def _limits(self) -> Limits:
        cluster = await self._slurm.nodes.cluster()
        unix_groups = await self._unix_groups()
        self._known_groups = self._hub_groups.union(unix_groups)
        return limits_for(
            unix_groups,
            cluster,
            self._slurm.free,
            self.default_partition or None,
            self._allowance(self._known_groups),
            {name: image["title"] for name, image in self.session_images.items()},
        )

    async def _groups(self) -> set[str]:
        """Return the names of the user's groups, JupyterHub's and the system's."""
        return self._hub_groups.union(await self._unix_groups())

    @property
    def _hub_groups(self) -> set[str]:
        """Return those that the directory named at the login: JupyterHub's record of its user."""
        return {group.name for group in self.user.groups}

    async def _unix_groups(self) -> list[str]:
        asking = asyncio.to_thread(groups_of, self.user.name)
        try:
            return await asyncio.wait_for(asking, SUDO_SECONDS)
        except TimeoutError as error:
            why = f"the name service did not tell the groups in {SUDO_SECONDS:g} s"
            raise account_unavailable(self.user.name, why) from error

    async def _accepted(self) -> AcceptedRequest:
        """Check the options once more, and reserve what they ask for.

        The REST API hands them over as they were sent.
        """
        request = options.parse(self.user_options)
        limits = await self._limits()
        await self._check_image(request.image)
        interrupted = await self._interrupted()
        # No await from the count to the reservation: of two starts at once, the second one must
        # find what the first one took.
        holding = self._held_by_others(interrupted)
        accepted = accept(request, limits, self._shape, self._defaults, holding)
        self.held_gpus = accepted.resources.gpus
        self.session_groups = sorted(self._known_groups)
        return accepted

    async def _check_image(self, name: str | None) -> None:
        """Look into an image, as far as the hub can, before a job is submitted for nothing."""
        image = self.session_images.get(name or "")
        if image is None or self.image_check is None:
            return
        looking = asyncio.to_thread(self.image_check, image["path"])
        try:
            holds_server = await asyncio.wait_for(looking, _IMAGE_SECONDS)
        except TimeoutError:
            return
        if holds_server is False:
            raise UnfitImage(
                f"No session can run in {image['title']}: jupyterhub-singleuser is not in the "
                "image. Choose another one, and tell the administrators."
            )

    def _last_options(self) -> Mapping[str, str]:
        stored = self.orm_spawner.user_options or {}
        try:
            return {key: f"{value}" for key, value in options.parse(stored).as_json().items()}
        except Refusal:
            return {}

    def _shown(self, error: SpawnerError) -> SpawnException:
        """Turn one of our errors into JupyterHub's: its words, its label, its log line."""
        shown = _for_the_page(
            str(error),
            reason=error.reason,
            log_message=error.detail,
            status=400 if isinstance(error, Refusal) else 503,
        )
        if isinstance(error, SessionEnded) and error.log_lines:
            shown.jupyterhub_html_message = form.render_failure(str(error), error.log_lines)
        return shown


def _for_the_page(words: str, *, reason: str, log_message: str, status: int) -> SpawnException:
    """Return JupyterHub's exception for a refused or failed start."""
    error = SpawnException(words, reason=reason, log_message=log_message, status_code=status)
    # Pages show this where it is set, and else the exception's own text, which is for logs.
    error.jupyterhub_message = words
    return error
