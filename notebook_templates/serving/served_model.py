"""The one model that is served: which it is, how it is loaded, and what waits for it."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import loaded_models
from batcher import Batcher
from completions import RequestError, Sampling, WrittenText
from loaded_models import ClassProbability, ImageModel
from model_folders import ModelFolder, ModelFolderError
from text_model import TextModel, Writing

log = logging.getLogger("model-server")
BATCH = 32  # requests that are computed together, at most
WAIT_SECONDS = 0.005


class ServedModel:
    """The one model that is served, or is being loaded."""

    def __init__(self) -> None:
        # One thread for everything that uses the device: a model is not loaded during a batch.
        self._executor = ThreadPoolExecutor(max_workers=1)
        self._loaded: TextModel | ImageModel | None = None
        self._loading: asyncio.Task[None] | None = None
        self._loads, self._seeded, self._tokens = 0, 0, 0
        self._began = 0.0
        self._seconds: float | None = None
        self.folder: ModelFolder | None = None
        self.error = ""
        self.texts: Batcher[tuple[int, int, Sampling], Writing, WrittenText]
        self.texts = self._batcher(self._written)
        self.images: Batcher[str, bytes, list[ClassProbability]] = self._batcher(self._classified)

    def _batcher(self, compute: Any) -> Any:
        return Batcher(compute, self._executor, BATCH, WAIT_SECONDS)

    @property
    def state(self) -> str:
        """``empty``, ``loading``, ``ready`` or ``failed``."""
        if self._loading is not None and not self._loading.done():
            return "loading"
        if self.error:
            return "failed"
        return "empty" if self._loaded is None else "ready"

    @property
    def name(self) -> str:
        """The model's."""
        return "" if self.folder is None else self.folder.name

    def load(self, folder: ModelFolder) -> None:
        """Begin to load a model in the place of the one that is there; raises `RequestError`."""
        if self.state == "loading":
            raise RequestError("a model is being loaded: wait until it is there")
        self.folder, self.error, self._seconds = folder, "", None
        self._loads += 1
        self._began = time.monotonic()
        self._loading = asyncio.create_task(self._load(folder))

    async def _load(self, folder: ModelFolder) -> None:
        loop = asyncio.get_running_loop()
        self._loaded = None  # its memory is free before the other one takes some
        try:
            self._loaded = await loop.run_in_executor(self._executor, loaded_models.read, folder)
        except ModelFolderError as error:
            log.warning("A model is not loaded", exc_info=error)
            self.error = str(error)
        self._seconds = time.monotonic() - self._began

    def described(self) -> dict[str, Any]:
        """Say for the page what is served."""
        seconds = self._seconds if self._seconds is not None else time.monotonic() - self._began
        batchers = (self.texts, self.images)
        return {
            "state": self.state,
            "model": None if self.folder is None else shown(self.folder),
            "has_chat_template": getattr(self._loaded, "has_chat_template", False),
            "seconds": round(seconds, 1) if self.folder else None,
            "error": self.error,
            "requests": sum(one.requests for one in batchers),
            "batches": sum(one.batches for one in batchers),
            "tokens": self._tokens,
        }

    def ready(self, kind: type[Any]) -> Any:
        """Return the model if it is of this kind; raises `RequestError`."""
        if self.state != "ready":
            raise RequestError("no model is loaded: choose one on the server's page")
        if not isinstance(self._loaded, kind):
            kinds = {TextModel: "write text", ImageModel: "classify images"}
            raise RequestError(f"the model that is loaded does not {kinds[kind]}")
        return self._loaded

    async def prepared(self, prepare: Callable[[TextModel], list[Writing]]) -> list[Writing]:
        """Have texts prepared by the model that is there now; raises `RequestError`."""
        model, load = self.ready(TextModel), self._loads
        # Another model can be loaded meanwhile, which has another tokenizer.
        writings = await asyncio.to_thread(prepare, model)
        self._seeded += 1
        for writing in writings:
            writing.load = load
            if writing.sampling.seed is not None:
                writing.request = self._seeded
        return writings

    async def write(self, writing: Writing) -> WrittenText:
        """Have a text written; raises `RequestError` if another model has prepared it."""
        return await self.texts.ask((writing.load, writing.request, writing.sampling), writing)

    def _written(self, asked: tuple[int, int, Sampling], writings: Sequence[Writing]) -> Any:
        if asked[0] != self._loads:
            raise RequestError("another model was loaded before it was this request's turn")
        texts: list[WrittenText] = self.ready(TextModel).written(writings)
        self._tokens += sum(one.tokens for one in texts)
        return texts

    def _classified(self, _: str, images: Sequence[bytes]) -> Any:
        return self.ready(ImageModel).classified(images)


def shown(folder: ModelFolder) -> dict[str, Any]:
    """Return what a page tells of a model."""
    return {
        "name": folder.name,
        "path": str(folder.path),
        "place": from_home(folder.path),
        "kind": folder.kind,
        "is_adapter": folder.base is not None,
        "size_mb": round(folder.size_mb, 1),
        "modified": folder.modified,
        "written": time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.modified)),
    }


def from_home(folder: Path) -> str:
    """Write a folder's path as users do."""
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)
