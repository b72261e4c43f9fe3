"""The options of one user's sessions: offered, checked and turned into an accepted request."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from jupyterhub_gpu_slurm.connection import SlurmConnection
from jupyterhub_gpu_slurm.defaults import SlurmDefaults
from jupyterhub_gpu_slurm.errors import OverLimit, SlurmError, UnfitImage
from jupyterhub_gpu_slurm.options import words
from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.options.form.render import Live, render
from jupyterhub_gpu_slurm.options.limits import limits_for
from jupyterhub_gpu_slurm.options.other_sessions import OtherSessions
from jupyterhub_gpu_slurm.options.policy import (
    AcceptedRequest,
    Defaults,
    Holding,
    Limits,
    accept,
    holding_in_words,
    left,
)
from jupyterhub_gpu_slurm.options.profile import Profile
from jupyterhub_gpu_slurm.options.request import SessionRequest, parse, single_values
from jupyterhub_gpu_slurm.options.unix_groups import groups_of
from jupyterhub_gpu_slurm.outlook.availability import Availability
from jupyterhub_gpu_slurm.outlook.forecast import Forecast
from jupyterhub_gpu_slurm.resources import ResourceShape
from jupyterhub_gpu_slurm.slurm.launcher_client import SUDO_SECONDS, account_unavailable

log = logging.getLogger(__name__)

_IMAGE_SECONDS = 15.0
# The form is more than these choices, which come from a database that Slurm does without for long.
_ACCOUNTS_SECONDS = 5.0
# A directory or a file system that hangs holds a thread for minutes. So these are not the threads
# that all of the hub shares, its database among them.
_DIRECTORY = ThreadPoolExecutor(8, "groups")
_IMAGES = ThreadPoolExecutor(4, "images")


@dataclass(frozen=True)
class SitePolicy:
    """The site's policy: sizes, limits, images and profiles.

    ``images`` have a ``title`` and a ``path`` each; ``image_check`` looks into one, in a thread,
    and says whether a session can run in it, or ``None`` where that cannot be told.
    ``offers_accounts``: users choose among the accounts and QOS that Slurm's accounting gives them.
    """

    shape: ResourceShape
    defaults: Defaults
    allowance: Callable[[Collection[str]], Allowance]
    images: Mapping[str, Mapping[str, Any]]
    image_check: Callable[[str], bool | None] | None = None
    profiles: tuple[Profile, ...] = ()
    offers_accounts: bool = SlurmDefaults.offer_accounts


class SessionOptions:
    """Options of a user at this moment. ``hub_groups`` names the groups that JupyterHub knows."""

    def __init__(
        self,
        slurm: SlurmConnection,
        username: str,
        site: Callable[[], SitePolicy],
        hub_groups: Callable[[], set[str]],
        others: OtherSessions,
    ) -> None:
        self._slurm = slurm
        self._username = username
        self._site_now = site
        self._hub_groups = hub_groups
        self._others = others

    @property
    def _site(self) -> SitePolicy:
        # JupyterHub's overrides of groups come after the form, before the start.
        return self._site_now()

    async def groups(self) -> set[str]:
        """Return the names of the user's groups, JupyterHub's and the system's.

        Raises:
            AccountUnavailable: the name service does not answer.

        """
        return self._hub_groups().union(await self._unix_groups())

    async def limits(self) -> Limits:
        """Return what the user may ask for.

        Raises `SlurmError`, and `OverLimit` where no partition is open to the user.
        """
        return (await self._limits_and_groups())[0]

    async def holding(self) -> Holding:
        """Return what the user's other sessions hold. Raises `SlurmError`."""
        return self._others.holding(await self._others.interrupted())

    async def form(
        self, chosen: Mapping[str, str], note: str, api_url: str, interval: float
    ) -> str:
        """Return the options form.

        ``chosen`` fills it in, ``note`` stands above it, and its script asks ``api_url`` every
        ``interval`` seconds for what is free.

        Raises `SlurmError`, `OverLimit`.
        """
        limits = await self._with_known_accounts(await self.limits())
        holding = await self.holding()
        offered = left(limits, holding)
        return render(
            offered,
            self._site.shape,
            self._site.defaults,
            chosen,
            f"{note} {holding_in_words(limits, holding)}".strip(),
            live=Live(await self.availability(offered), api_url, interval),
            profiles=self._site.profiles,
        )

    async def availability(self, limits: Limits | None = None) -> tuple[Availability, ...]:
        """Return what the partitions that are open to the user have free.

        Raises `SlurmError`, `OverLimit`.
        """
        limits = limits or await self.limits()
        counted = self._slurm.free.of(await self._slurm.nodes.cluster())
        return tuple(counted[limit.name] for limit in limits.partitions if limit.name in counted)

    async def forecast(
        self, fields: Mapping[str, list[str]], script_of: Callable[[AcceptedRequest], str]
    ) -> Forecast:
        """Return when what a form asks for would start. Nothing is reserved or submitted.

        ``script_of`` writes the job's script. Raises `BadOption`, `SlurmError`.
        """
        request = parse(single_values(fields))
        try:
            holding = await self.holding()
            limits = await self._with_accounts(await self.limits(), request)
            accepted = accept(request, limits, self._site.shape, self._site.defaults, holding)
        except OverLimit as error:
            return Forecast("never", why=str(error))
        cluster = await self._slurm.nodes.cluster()
        has = self._slurm.free.with_feature(cluster, accepted.partition, accepted.constraint)
        return await self._slurm.forecasts.forecast(
            self._username,
            script_of(accepted),
            is_large_enough=has is not None
            and has.is_large_enough(accepted.resources.gpus, accepted.gpu_type),
        )

    async def grant(
        self, asked: Mapping[str, Any], reserve: Callable[[AcceptedRequest, set[str]], None]
    ) -> AcceptedRequest:
        """Check options as they were sent; ``reserve`` what they come to, for these groups' member.

        Raises `Refusal`, `SlurmError`.
        """
        request = parse(asked)
        limits, groups = await self._limits_and_groups()
        limits = await self._with_accounts(limits, request)
        await self._check_image(request.image)
        interrupted = await self._others.interrupted()
        # No await from the count to the reservation: of two starts at once, the second one must
        # find what the first one took.
        holding = self._others.holding(interrupted)
        accepted = accept(request, limits, self._site.shape, self._site.defaults, holding)
        reserve(accepted, groups)
        return accepted

    async def _limits_and_groups(self) -> tuple[Limits, set[str]]:
        cluster = await self._slurm.nodes.cluster()
        unix_groups = await self._unix_groups()
        groups = self._hub_groups().union(unix_groups)
        limits = limits_for(
            unix_groups,
            cluster,
            self._slurm.free,
            self._site.defaults.partition,
            self._site.allowance(groups),
            {name: image["title"] for name, image in self._site.images.items()},
            [one.request.partition for one in self._site.profiles if one.request.partition],
        )
        return limits, groups

    async def _with_known_accounts(self, limits: Limits) -> Limits:
        """Add the accounts and QOS to choose from; none where the accounting does not tell them."""
        allowance = limits.allowance
        if not self._site.offers_accounts or (allowance.account and allowance.qos):
            return limits
        try:
            asking = self._slurm.accounts.of(self._username)
            associations = await asyncio.wait_for(asking, _ACCOUNTS_SECONDS)
        except (SlurmError, TimeoutError) as error:
            why = error.detail if isinstance(error, SlurmError) else "sacctmgr is slow"
            log.warning("No accounts to choose for %s: %s", self._username, why)
            return limits
        return replace(limits, associations=associations)

    async def _with_accounts(self, limits: Limits, request: SessionRequest) -> Limits:
        """Add the same where a request names one. Raises `SlurmError`."""
        if not self._site.offers_accounts or not (request.account or request.qos):
            return limits
        return replace(limits, associations=await self._slurm.accounts.of(self._username))

    async def _unix_groups(self) -> list[str]:
        loop = asyncio.get_running_loop()
        asking = loop.run_in_executor(_DIRECTORY, groups_of, self._username)
        try:
            return await asyncio.wait_for(asking, SUDO_SECONDS)
        except TimeoutError as error:
            why = f"the name service did not tell the groups in {SUDO_SECONDS:g} s"
            raise account_unavailable(self._username, why) from error

    async def _check_image(self, name: str | None) -> None:
        """Look into an image, as far as the hub can, before a job is submitted for nothing."""
        image = self._site.images.get(name or "")
        if image is None or self._site.image_check is None:
            return
        loop = asyncio.get_running_loop()
        looking = loop.run_in_executor(_IMAGES, self._site.image_check, image["path"])
        try:
            holds_server = await asyncio.wait_for(looking, _IMAGE_SECONDS)
        except TimeoutError:
            return
        if holds_server is False:
            raise UnfitImage(words.unfit_image(image["title"]))
