"""The user's environments, for the page.

``GET /portal/environments`` lists them, with what new ones can be built on, where they can lie and
how full that is, and what is being done. ``POST`` begins to make one, with
``{"name": N, "on": [MODULE], "packages": [PACKAGE], "in": FOLDER, "conda": false}``.
``DELETE /portal/environments/of/NAME`` begins to remove one, and
``POST /portal/environments/stop`` stops either.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from dsportal.session.files.mounts import Mounts, NoAnswer
from dsportal.session.files.quota import QuotaUnknown, Storage
from dsportal.session.own_environments import words
from dsportal.session.own_environments.conda import PROGRAM_VARIABLE
from dsportal.session.own_environments.kernels import OwnKernels
from dsportal.session.own_environments.making import Order
from dsportal.session.own_environments.records import (
    EnvironmentFolder,
    OwnEnvironment,
    OwnEnvironmentError,
    checked_name,
)
from dsportal.session.own_environments.work import OwnWork, Task
from dsportal.session_schema import Kernel

_KEYS = {"name", "on", "packages", "in", "conda"}
_AN_ORDER = (
    'The body must be {"name": TEXT, "on": [TEXT], "packages": [TEXT], "in": TEXT, "conda": true '
    "or false}, and nothing else."
)
_MOST = 100
# A folder that is larger, or a slower server, has no size on the page until that is known.
_SIZE_SECONDS = 3.0


def order_from(body: bytes) -> Order:
    """Read what the page asks for; raises `OwnEnvironmentError`."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise OwnEnvironmentError(_AN_ORDER) from error
    if not isinstance(given, dict) or given.keys() != _KEYS:
        raise OwnEnvironmentError(_AN_ORDER)
    name, on, packages, folder = (given[key] for key in ("name", "on", "packages", "in"))
    if not _are_texts([name, folder]) or not _are_texts(on) or not _are_texts(packages):
        raise OwnEnvironmentError(_AN_ORDER)
    if not isinstance(given["conda"], bool):
        raise OwnEnvironmentError(_AN_ORDER)
    return Order(name, tuple(on), tuple(packages), folder=folder, conda=given["conda"]).checked()


def _are_texts(given: object) -> bool:
    if not isinstance(given, list) or len(given) > _MOST:
        return False
    return all(isinstance(one, str) for one in given)


def bases(kernels: Mapping[str, Kernel]) -> list[dict[str, Any]]:
    """Return what new ones can be built on: the modules of the settings' kernels, each once."""
    found: dict[tuple[str, ...], str] = {}
    for kernel in kernels.values():
        if kernel.language == "python" and kernel.modules:
            found.setdefault(tuple(kernel.modules), kernel.display_name)
    return [{"on": list(modules), "title": title} for modules, title in found.items()]


async def overview(
    work: OwnWork,
    kernels: OwnKernels,
    storage: Storage,
    offered: Mapping[str, Kernel],
) -> dict[str, Any]:
    """Return what the page shows.

    What is being done is never newer than the list: a page that is told it has ended does not
    ask again.
    """
    task = replace(work.task) if work.task else None
    found = await kernels.look()
    sizes = await asyncio.gather(*(kernels.size(one, _SIZE_SECONDS) for one in found))
    asked = [_folder(folder, kernels.mounts, storage) for folder in kernels.folders or ()]
    return {
        "folders": [folder for folder in await asyncio.gather(*asked) if folder is not None],
        "environments": [
            {
                "name": one.name,
                "path": str(one.path),
                "in": one.folder.name,
                "on": one.record.on_words if one.record else "",
                "packages": list(one.record.packages) if one.record else [],
                "size": size,
                "trouble": _trouble(one, task),
            }
            for one, size in zip(found, sizes, strict=True)
        ],
        "bases": bases(offered),
        "conda": bool(kernels.environment.get(PROGRAM_VARIABLE)),
        "task": asdict(task) if task else None,
    }


class _Handler(APIHandler):
    # A page asks by itself: no sign that somebody works.
    _track_activity = False

    def initialize(
        self,
        work: OwnWork,
        kernels: OwnKernels,
        storage: Storage,
        offered: Mapping[str, Kernel],
    ) -> None:
        """Take what the session has."""
        self.work, self.kernels, self.storage, self.offered = work, kernels, storage, offered

    def require_folders(self) -> None:
        """Answer 404 where there are none to be."""
        if self.kernels.folders is None:
            raise web.HTTPError(404, words.OFF)


class EnvironmentsHandler(_Handler):
    """Lists the environments, and starts to make one."""

    @web.authenticated
    async def get(self) -> None:
        """Give the list."""
        self.require_folders()
        told = await overview(self.work, self.kernels, self.storage, self.offered)
        self.finish(json.dumps(told))

    @web.authenticated
    async def post(self) -> None:
        """Begin to make one."""
        self.require_folders()
        try:
            task = await self.work.create(order_from(self.request.body))
        except OwnEnvironmentError as error:
            raise web.HTTPError(400, str(error)) from error
        self.set_status(202)
        self.finish(json.dumps(asdict(task)))


class StopHandler(_Handler):
    """POST handler that stops the running command."""

    @web.authenticated
    async def post(self) -> None:
        """Stop it; return when nothing of it is left."""
        await self.work.stop()
        self.finish("{}")


class EnvironmentHandler(_Handler):
    """DELETE handler that removes an environment."""

    @web.authenticated
    async def delete(self, name: str) -> None:
        """Begin to remove it."""
        self.require_folders()
        try:
            task = await self.work.remove(checked_name(name))
        except OwnEnvironmentError as error:
            raise web.HTTPError(400, str(error)) from error
        self.set_status(202)
        self.finish(json.dumps(asdict(task)))


def _trouble(one: OwnEnvironment, task: Task | None) -> str:
    is_busy = task is not None and task.state == "running" and task.name == one.name
    return "" if is_busy else one.trouble


async def _folder(
    folder: EnvironmentFolder, mounts: Mounts, storage: Storage
) -> dict[str, Any] | None:
    """Return where environments can lie, and how full that is; ``None``: the user cannot write."""
    told: dict[str, Any] = {"name": folder.name, "path": str(folder.path)}
    told |= {"storage": None, "trouble": ""}

    def existing() -> str | None:
        return None if folder.trouble else str(folder.existing)

    try:
        path = await mounts.in_time(existing, str(folder.path))
    except NoAnswer as error:
        return told | {"trouble": str(error)}
    if path is None:
        return None
    with suppress(QuotaUnknown):
        return told | {"storage": asdict(await storage.use(path))}
    return told


def routes(
    base_url: str,
    work: OwnWork,
    kernels: OwnKernels,
    storage: Storage,
    offered: Mapping[str, Kernel],
) -> list[tuple[str, type[APIHandler], dict[str, Any]]]:
    """Give the server's routes."""
    given = {"work": work, "kernels": kernels, "storage": storage, "offered": offered}
    return [
        (url_path_join(base_url, "portal/environments"), EnvironmentsHandler, given),
        (url_path_join(base_url, "portal/environments/stop"), StopHandler, given),
        (
            url_path_join(base_url, "portal/environments/of/([^/]+)"),
            EnvironmentHandler,
            given,
        ),
    ]
