"""The root of the settings: all of ``portal.toml``."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.access import AccessSettings
from dsportal.settings.authentication import Authentication
from dsportal.settings.backup import BackupSettings
from dsportal.settings.cluster import ClusterSettings
from dsportal.settings.containers import ContainerSettings
from dsportal.settings.hub import HubSettings
from dsportal.settings.idle import Idle
from dsportal.settings.limits import LimitSettings
from dsportal.settings.look import LookSettings
from dsportal.settings.monitoring import Monitoring
from dsportal.settings.profiles import ProfileSettings
from dsportal.settings.session import KernelSettings, Session
from dsportal.settings.slurm import SlurmSettings
from dsportal.settings.table import Table, named_tables, one_table, setting
from dsportal.settings.tools import ToolSettings
from dsportal.settings.usage import Usage
from dsportal.values import KernelTables, MarkTables


class Settings(Table):
    """All settings of the portal, as in ``portal.toml``."""

    hub: HubSettings = HubSettings()
    authentication: Authentication
    access: AccessSettings = AccessSettings()
    slurm: SlurmSettings = SlurmSettings()
    session: Session
    kernels: KernelTables[KernelSettings] = setting(
        {},
        "The kernel NAME, besides Python 3. Notebooks store this name.",
    )
    tools: MarkTables[ToolSettings] = setting(
        {},
        "The web tool NAME: a card in the launcher, and a web page of the session behind the "
        "user's own login, at `tools/NAME/`. A name has 1 to 32 lower-case letters, digits and "
        "hyphens.",
    )
    containers: ContainerSettings = Field(default_factory=ContainerSettings)
    # Made anew, because pydantic copies a default and a read-only mapping cannot be copied.
    limits: LimitSettings = Field(default_factory=LimitSettings)
    profiles: MarkTables[ProfileSettings] = setting(
        {},
        "The size NAME, which the form offers to users who can have it, in the order of the file. "
        "A name has 1 to 32 lower-case letters, digits and hyphens.",
    )
    idle: Idle = Field(default_factory=Idle)
    usage: Usage = Usage()
    monitoring: Monitoring = Monitoring()
    cluster: ClusterSettings = ClusterSettings()
    look: LookSettings = LookSettings()
    backup: BackupSettings = BackupSettings()

    @model_validator(mode="after")
    def _modules_can_be_loaded(self) -> Self:
        kernels = {f"kernel {name}": kernel.modules for name, kernel in self.kernels.items()}
        tools = {f"tool {name}": tool.modules for name, tool in self.tools.items()}
        with_modules = [name for name, modules in (kernels | tools).items() if modules]
        if with_modules and not self.session.modules_init:
            raise PydanticCustomError(
                "rule",
                "the modules of {name} need session.modules_init",
                {"name": with_modules[0]},
            )
        return self

    @model_validator(mode="after")
    def _the_cluster_page_has_a_port_of_its_own(self) -> Self:
        hub = self.hub
        taken = {urlsplit(url).port for url in (hub.public_url, hub.api_url, hub.proxy_api_url)}
        if urlsplit(self.cluster.url).port in taken:
            raise PydanticCustomError(
                "rule", "cluster.url needs another port than the addresses in [hub]"
            )
        return self


def table_at(keys: list[str]) -> type[Table] | None:
    """Give the table's model at a path of keys, None where there is none."""
    if not keys:
        return Settings
    *outer, last = keys
    if (table := table_at(outer)) is not None:
        return one_table(table.model_fields[last]) if last in table.model_fields else None
    # The table of a name that the site chose, such as a group's.
    parent = table_at(outer[:-1]) if outer else None
    field = parent.model_fields.get(outer[-1]) if parent else None
    return named_tables(field) if field else None
