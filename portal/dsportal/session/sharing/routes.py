"""Sharing in the browser: the owner's list for JupyterLab, and the page that a link leads to.

``GET /portal/shares`` lists the user's own shares and groups. ``POST`` with ``{"path": P,
"kind": K, "names": [N]}`` shares a notebook, ``DELETE /portal/shares/ID`` stops that.
``GET /portal/shared/OWNER/ID/NAME`` shows a share to a reader, in the reader's own session;
``POST`` to it copies it into the reader's home. A link for others begins with the hub's
``user-redirect``, which leads everybody to their own session.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.utils import ensure_async, url_path_join
from tornado import web

from dsportal.session.files.names import is_name
from dsportal.session.sharing import reading, words
from dsportal.session.sharing.access import Audience, SharingError, audience_from, own_groups
from dsportal.session.sharing.shares import Share, Shares, notebook_at
from dsportal.session.web.page_files import page_of

_PAGE = Path(__file__).with_name("page.html.j2")
_SECONDS = 90.0
"""How long a notebook may take to become a page."""
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Nothing of the session's: no token, and no templates or settings of the home.
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "JUPYTER_NO_CONFIG": "1"}


class Sharing:
    """State that the sharing routes have in common."""

    def __init__(self, setting: str, user: str, look: Mapping[str, str]) -> None:
        """Take ``session.shares_folder``, empty for no sharing, the session's user and its look."""
        self.setting, self.user, self.look = setting, user, look
        self.folder = reading.folder_of(setting, user)
        self.shares = Shares(Path(self.folder))
        self._one = asyncio.Lock()

    async def html(self, content: bytes) -> str | None:
        """Return a notebook as a page; ``None`` where that does not work. One at a time."""
        argv = (sys.executable, "-I", "-m", "dsportal.session.sharing.render")
        async with self._one:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=_ENVIRONMENT,
                # nbconvert takes templates, which are programs, from the folder that it runs in.
                cwd="/",
            )
            try:
                written, _ = await asyncio.wait_for(process.communicate(content), _SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
                return None
        return written.decode("utf-8", errors="replace") if process.returncode == 0 else None

    def told(self, share: Share) -> dict[str, Any]:
        """Return a share as the page has it; ``link`` is below ``user-redirect`` of the hub."""
        link = f"portal/shared/{quote(self.user)}/{share.id}/{quote(share.name)}"
        return {**asdict(share), "link": link}


def order_from(body: bytes) -> tuple[str, Audience]:
    """Read what the page asks for; raises `SharingError`."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SharingError(words.BAD_ORDER) from error
    if not isinstance(given, dict) or given.keys() != {"path", "kind", "names"}:
        raise SharingError(words.BAD_ORDER)
    path = given["path"]
    if not isinstance(path, str) or not is_name(path) or ".." in path.split("/"):
        raise SharingError(words.BAD_ORDER)
    return path.strip("/"), audience_from(given["kind"], given["names"])


class SharesHandler(APIHandler):
    """Lists the user's shares, and makes one."""

    def initialize(self, sharing: Sharing) -> None:
        """Take the session's sharing."""
        self.sharing = sharing

    @web.authenticated
    async def get(self) -> None:
        """Give them, the last first."""
        contents: Any = self.contents_manager
        shares = await contents.in_time(self.sharing.shares.all, self.sharing.folder)
        groups = await contents.in_time(own_groups)
        told = [self.sharing.told(share) for share in shares]
        self.finish(json.dumps({"groups": groups, "shares": told}))

    @web.authenticated
    async def post(self) -> None:
        """Share one."""
        contents: Any = self.contents_manager
        try:
            path, audience = order_from(self.request.body)
            place = contents.place(path)
            content = await contents.in_time(partial(notebook_at, place, path), place)
            make = partial(self.sharing.shares.add, path, content, audience)
            share = await contents.in_time(make, self.sharing.folder, repeat=False)
        except SharingError as error:
            raise web.HTTPError(400, str(error)) from error
        self.log.info("Shared %s as %s with %s %s", path, share.id, audience.kind, audience.names)
        self.set_status(201)
        self.finish(json.dumps(self.sharing.told(share)))


class ShareHandler(APIHandler):
    """DELETE handler that stops sharing a notebook."""

    def initialize(self, sharing: Sharing) -> None:
        """Take the session's sharing."""
        self.sharing = sharing

    @web.authenticated
    async def delete(self, share: str) -> None:
        """Remove what others read."""
        contents: Any = self.contents_manager
        remove = partial(self.sharing.shares.remove, share)
        try:
            await contents.in_time(remove, self.sharing.folder, repeat=False)
        except SharingError as error:
            raise web.HTTPError(404, str(error)) from error
        self.set_status(204)
        self.finish()


class SharedHandler(JupyterHandler):
    """Shows what somebody else shares, and copies it."""

    def initialize(self, sharing: Sharing) -> None:
        """Take the session's sharing."""
        self.sharing = sharing

    @web.authenticated
    async def get(self, owner: str, share: str, name: str) -> None:
        """Show it in a frame that runs nothing."""
        shared = await self._read(owner, share, name)
        html = await self.sharing.html(shared.content)
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Cache-Control", "no-store")
        day = f"{datetime.fromtimestamp(shared.at, UTC):%-d %B %Y, %H:%M} UTC"
        self.finish(
            page_of(_PAGE).render(
                look=self.sharing.look,
                name=shared.name,
                owner=shared.owner,
                day=day,
                html=html,
                trouble=words.NOT_SHOWN,
                xsrf_token=self.xsrf_token.decode(),
            )
        )

    @web.authenticated
    async def post(self, owner: str, share: str, name: str) -> None:
        """Copy it into the home, and open the copy.

        As a text: as a notebook it would be signed where it says of itself that it is trusted.
        """
        shared = await self._read(owner, share, name)
        contents: Any = self.contents_manager
        copy = await ensure_async(contents.increment_filename(shared.name, "", "-"))
        text = shared.content.decode("utf-8", errors="replace")
        model = {"type": "file", "format": "text", "content": text}
        await ensure_async(contents.save(model, copy))
        self.redirect(url_path_join(self.base_url, "lab/tree", quote(copy)), status=303)

    async def _read(self, owner: str, share: str, name: str) -> reading.Shared:
        contents: Any = self.contents_manager
        try:
            place = reading.place_of(self.sharing.setting, owner, share, name)
            shared: reading.Shared = await contents.in_time(
                partial(reading.read, place, owner), place
            )
        except SharingError as error:
            raise web.HTTPError(404, str(error)) from error
        return shared


def routes(base_url: str, sharing: Sharing) -> list[tuple[str, type[JupyterHandler], Any]]:
    """Give the server's routes; none where nothing is shared."""
    if not sharing.setting:
        return []
    given = {"sharing": sharing}
    shared = url_path_join(base_url, "portal/shared/([^/]+)/([0-9a-f]{32})/([^/]+)")
    return [
        (url_path_join(base_url, "portal/shares"), SharesHandler, given),
        (url_path_join(base_url, "portal/shares/([0-9a-f]{32})"), ShareHandler, given),
        (shared, SharedHandler, given),
    ]
