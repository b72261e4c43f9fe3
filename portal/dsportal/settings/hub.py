"""Settings of the hub and the proxy: their addresses."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.table import Table, setting
from dsportal.values import (
    AbsolutePath,
    BindUrl,
    DatabaseUrl,
    HttpUrl,
    Mark,
    OptionalPath,
    SubdomainHost,
    host_of,
)


class HubSettings(Table):
    """Addresses, certificates and state of the hub and the proxy."""

    name: Mark = setting(
        "portal",
        "Marks this hub's jobs in Slurm; two hubs on one cluster need different names.",
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
        "http://127.0.0.1:8001", "Where the proxy listens for instructions from the hub."
    )
    state_dir: AbsolutePath = setting(
        "/var/lib/data-scientist-portal/hub",
        "The folder with the hub's database and its cookie secret, owned by the hub's user.",
    )
    database_url: DatabaseUrl = setting(
        "",
        "The hub's PostgreSQL database, as `postgresql://USER@HOST/NAME?sslmode=verify-full`, or "
        "`postgresql:///NAME?host=FOLDER` for a socket; empty for an SQLite file in `state_dir`.",
        secret=True,
    )
    database_password_file: OptionalPath = setting(
        "",
        "The file with the password for `database_url`, in the format of PostgreSQL's `.pgpass`; "
        "mode 0600, owned by the hub's user. Empty if the server asks for none.",
    )
    standby: bool = setting(
        False,
        "Whether several machines share this hub, with the same `database_url` and `state_dir`: "
        "one runs it, the others are on standby.",
    )
    certificate_file: OptionalPath = setting(
        "",
        "The certificate that browsers see, with its intermediate certificates, as PEM; "
        "`public_url` then begins with https://.",
    )
    certificate_key_file: OptionalPath = setting(
        "", "The certificate's private key, readable by the hub's user only."
    )
    tls_elsewhere: bool = setting(
        False,
        "Whether a proxy of the site in front of the portal speaks HTTPS with the browsers; the "
        "portal then does not warn that passwords are unencrypted.",
    )
    internal_ssl: bool = setting(
        False,
        "Whether hub, proxy, services and sessions use TLS with each other, with certificates "
        "that the hub issues.",
    )
    subdomain_host: SubdomainHost = setting(
        "",
        "The portal's address, as https://HOST[:PORT], if each user's sessions are to have a host "
        "name of their own below it, USER.HOST; empty: all have the portal's. DNS and the "
        "certificate must cover *.HOST.",
    )
    max_named_servers: int = setting(
        0,
        "How many named servers a user may have besides the unnamed one, to run several sessions "
        "at once; 0 for none.",
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

    @model_validator(mode="after")
    def _https_has_its_files(self) -> Self:
        is_https = self.public_url.startswith("https://")
        if is_https != bool(self.certificate_file) or is_https != bool(self.certificate_key_file):
            raise PydanticCustomError(
                "rule",
                "a public_url with https:// needs certificate_file and certificate_key_file, and "
                "one with http:// has neither",
            )
        if is_https and self.tls_elsewhere:
            raise PydanticCustomError(
                "rule", "tls_elsewhere is for a public_url with http://, behind the site's proxy"
            )
        return self

    @model_validator(mode="after")
    def _a_standby_has_a_database_for_all(self) -> Self:
        if self.standby and not self.database_url:
            raise PydanticCustomError(
                "rule", "standby needs a database_url: the database says which machine runs the hub"
            )
        return self

    @property
    def is_encrypted(self) -> bool:
        """Whether what browsers send is encrypted on its way here, as far as is known."""
        return self.public_url.startswith("https://") or self.tls_elsewhere

    @property
    def has_host_cookies(self) -> bool:
        """Whether cookies are such that no other host can set them: ``__Host-`` needs HTTPS."""
        return self.subdomain_host.startswith("https://")

    def internal(self, url: str) -> str:
        """Return an address of the portal's own parts as it is spoken to."""
        return urlsplit(url)._replace(scheme="https" if self.internal_ssl else "http").geturl()

    @property
    def certificates_dir(self) -> str:
        """Where the hub keeps the authorities and certificates of ``internal_ssl``."""
        return f"{self.state_dir}/internal-tls"
