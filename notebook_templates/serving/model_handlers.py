"""What the model server answers: its page, which model is loaded, and the classes of images."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import model_folders
from answers import refusal
from completions import ModelNotFoundError, RequestError
from loaded_models import ImageModel
from model_folders import ModelFolder, ModelFolderError
from served_model import ServedModel, from_home, shown
from tornado import web

MOST_BYTES = 20 * 2**20
"""Of a request: an image, or prompts."""
FILES = Path(__file__).with_name("page")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def told(raised: object, otherwise: str) -> dict[str, Any]:
    """Say what is wrong, as far as it is for whoever has asked."""
    is_refused = isinstance(raised, RequestError | ModelFolderError)
    code = "model_not_found" if isinstance(raised, ModelNotFoundError) else None
    return refusal(str(raised) if is_refused else otherwise, code)


class ModelHandler(web.RequestHandler):
    """What all answers have in common."""

    def initialize(self, served: ServedModel, roots: Sequence[Path]) -> None:
        """Take the model, and the folders with others."""
        self.served, self.roots = served, roots

    def set_default_headers(self) -> None:
        """Let a page use nothing but what is here."""
        self.set_header("Server", "model-server")
        self.set_header("Content-Security-Policy", POLICY)
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")

    def body(self) -> Any:
        """Read the request's JSON; raises `RequestError`."""
        try:
            return json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body is not JSON: {error}") from error

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong as clients of OpenAI's API expect it."""
        self.finish(told(kwargs.get("exc_info", (None, None))[1], self._reason))

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer 400 where it is the request that is wrong, 404 where the model is not there."""
        raised = kwargs.get("exc_info", (None, None))[1]
        if isinstance(raised, RequestError | ModelFolderError):
            status_code = 404 if isinstance(raised, ModelNotFoundError) else 400
        super().send_error(status_code, **kwargs)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Write a traceback for what is a fault of the server only."""
        if not isinstance(value, RequestError | ModelFolderError):
            super().log_exception(typ, value, tb)


class ModelPageHandler(ModelHandler):
    """The page."""

    async def get(self) -> None:
        """Show the models that there are."""
        there = await asyncio.to_thread(model_folders.found, self.roots)
        self.render(
            str(FILES / "page.html"),
            models=[shown(one) for one in there],
            most_bytes=MOST_BYTES,
            roots=[from_home(root) for root in self.roots],
        )


class StateHandler(ModelHandler):
    """What is served."""

    def get(self) -> None:
        """Say which model is loaded, or why none is."""
        self.finish(self.served.described())


class LoadHandler(ModelHandler):
    """Another model."""

    async def post(self) -> None:
        """Begin to load the model of ``{"folder": "..."}``."""
        body = self.body()
        folder = body.get("folder") if isinstance(body, dict) else None
        if not isinstance(folder, str) or not folder:
            raise RequestError("folder must be the path of a model's folder")
        self.served.load(await asyncio.to_thread(model_folders.at, folder))
        self.set_status(202)
        self.finish(self.served.described())


class ModelsHandler(ModelHandler):
    """``/v1/models``, which clients ask for a model's name."""

    def get(self) -> None:
        """List the model that is loaded."""
        folder = self.served.folder if self.served.state == "ready" else None
        listed = [] if folder is None else [_listed(folder)]
        self.finish({"object": "list", "data": listed})


def _listed(folder: ModelFolder) -> dict[str, Any]:
    created = int(folder.modified)
    return {"id": folder.name, "object": "model", "created": created, "owned_by": "you"}


class ClassifyHandler(ModelHandler):
    """``/v1/classify``: an image gets its likeliest classes."""

    async def post(self) -> None:
        """Classify the image that is the request's body."""
        if not self.request.body:
            raise RequestError("the body must be an image: JPEG, PNG or another that Pillow reads")
        self.served.ready(ImageModel)
        classes = await self.served.images.ask("", self.request.body)
        self.finish({"model": self.served.name, "classes": [asdict(one) for one in classes]})


class ModelErrorHandler(ModelHandler):
    """What is not there."""

    def prepare(self) -> None:
        """Say so."""
        raise web.HTTPError(404)
