"""Lazy imports: what JupyterHub's clients do not need of it is loaded when it is used.

A client is a session's server, or a service that knows the hub's login. ``jupyter lab`` and
JupyterHub's part of it need about 1.3 s to import; more than half goes into modules that a
session's server uses late or never, and a service would hold them in memory. While the importing
modules load, a stand-in takes the slow module's place in ``sys.modules``; afterwards it is gone, so
whoever imports the module later gets the real one, and whoever holds the stand-in is handed on to
the real one at the first use.

It is in neither folder of patches, ``hub/patches`` or ``session/upstream``: sessions and the hub's
services both need it and may not import each other. It changes no code, only when code is loaded.

Tried with JupyterHub 6.1.1, JupyterLab 4.6.6 and jupyterlab_server 2.28.1. With versions that need
more of these modules while they load, a stand-in fetches the real module at once: then all is as
without this, only slower.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def _called_later(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call


class _NeverUsed(Exception):
    """Stand-in for classes that a client never makes but names in ``isinstance`` or ``except``."""


# Module -> the names bound with "from module import name" while the others load.
_STAND_INS: Mapping[str, Mapping[str, Any]] = {
    # JupyterHub's database, 350 ms, in a process without one: functions of the hub's in
    # jupyterhub.scopes, jupyterhub.metrics and jupyterhub.utils use it.
    "sqlalchemy": {},
    "sqlalchemy.exc": {"SQLAlchemyError": _NeverUsed},
    "jupyterhub.orm": {},
    "jupyterhub.roles": {},
    "jupyterhub.handlers.pages": {"HealthCheckHandler": _NeverUsed},
    # What is asked of the hub goes through these, 100 ms: first at the first login.
    "aiohttp": {},
    "jupyterhub.httpclient": {"fetch": _called_later("jupyterhub.httpclient", "fetch")},
    # Fetches a listing of blocked Lab extensions, 40 ms; a session has none.
    "requests": {},
    # Installs Lab extensions from PyPI, 45 ms; a session's are read-only.
    "jupyterlab.extensions.pypi": {"PyPIExtensionManager": _NeverUsed},
}


@contextmanager
def postponed() -> Iterator[None]:
    """Import inside this what would import the slow modules."""
    stand_ins = {
        name: _StandIn(name, attributes)
        for name, attributes in _STAND_INS.items()
        if name not in sys.modules
    }
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in.give_way()


class _StandIn(ModuleType):
    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(attributes)

    def give_way(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> Any:
        # The import system asks for __path__ and the like; that is not the module's use.
        if name.startswith("__") and sys.modules.get(self.__name__) is self:
            raise AttributeError(name)
        self.give_way()
        return getattr(importlib.import_module(self.__name__), name)
