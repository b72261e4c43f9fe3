"""Where the hub and the proxy listen."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from portal.settings.table import Table, setting
from portal.values import AbsolutePath, BindUrl, DatabaseUrl, HttpUrl, Mark, OptionalPath, host_of


class Hub(Table):
    """Where the hub and the proxy listen, and where the hub keeps its state."""

    name: Mark = setting(
        "portal",
        "Marks this hub's jobs in Slurm; two hubs on one cluster need different ones.",
    )
    public_url: BindUrl = setting(
        "http://0.0.0.0:8000",  # the portal is for other machines
        "Where the proxy listens for browsers; 0.0.0.0 stands for all addresses.",
    )
    api_url: HttpUrl = setting(
        "http://127.0.0.1:8081",
        "Where the hub listens, as the proxy and the sessions on the compute nodes reach it.",
    )
    proxy_api_url: HttpUrl = setting(
        "http://127.0.0.1:8001", "Where the proxy takes the hub's instructions."
    )
    state_dir: AbsolutePath = setting(
        "/var/lib/data-scientist-portal/hub",
        "The folder with the hub's database and its cookie secret; the hub's user owns it.",
    )
    database_url: DatabaseUrl = setting(
        "",
        "The hub's PostgreSQL, as `postgresql://USER@HOST/NAME?sslmode=verify-full`, or "
        "`postgresql:///NAME?host=FOLDER` for a socket; empty for an SQLite file in `state_dir`.",
        secret=True,
    )
    database_password_file: OptionalPath = setting(
        "",
        "The file with the password for `database_url`, in the form of PostgreSQL's `.pgpass`; "
        "mode 0600, the hub's user owns it. Empty where the server asks for none.",
    )
    max_named_servers: int = setting(
        0,
        "How many named servers a user may have besides the unnamed one, for several sessions at "
        "once; 0 for none.",
        ge=0,
        le=100,
    )

    @model_validator(mode="after")
    def _no_two_listen_at_one_place(self) -> Self:
        ports = [urlsplit(url).port for url in (self.public_url, self.api_url, self.proxy_api_url)]
        hosts = [host_of(self.api_url), host_of(self.proxy_api_url)]
        if ports[0] in ports[1:] or (ports[1] == ports[2] and hosts[0] == hosts[1]):
            raise PydanticCustomError(
                "rule", "public_url, api_url and proxy_api_url need different ports"
            )
        return self
