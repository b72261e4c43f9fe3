"""Who may log in, and which directory is asked."""

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from portal.settings.table import Table, setting
from portal.values import AttributeName, DirectoryUrls, DistinguishedName, Name, OptionalPath, Texts


class Ldap(Table):
    """The directory that knows the users and their groups."""

    servers: DirectoryUrls = setting(
        (), "The directory's servers; the first that answers is asked, the others stand by."
    )
    start_tls: bool = setting(
        False, "Encrypts ldap:// connections before the password is sent; ldaps:// always is."
    )
    ca_file: OptionalPath = setting(
        "", "The authorities (PEM) that sign the servers' certificates; empty for the system's."
    )
    user_base: DistinguishedName = setting("", "The branch of the directory with the users.")
    user_attribute: AttributeName = setting(
        "uid", "The attribute of a user that holds the Unix name."
    )
    group_base: DistinguishedName = setting("", "The branch of the directory with the groups.")
    group_attribute: AttributeName = setting("cn", "The attribute of a group that holds its name.")
    bind_dn: DistinguishedName = setting(
        "",
        "The account that looks users up; empty where a user's entry is "
        "`user_attribute=NAME,user_base` itself.",
    )
    bind_password_file: OptionalPath = setting(
        "", "The file with the password of `bind_dn`, readable by the hub's user only."
    )
    connect_timeout_seconds: int = setting(
        3, "How long one server may take to accept a connection.", unit="seconds", ge=1, le=60
    )
    receive_timeout_seconds: int = setting(
        5, "How long one server may take for one answer.", unit="seconds", ge=1, le=60
    )
    login_timeout_seconds: int = setting(
        20, "How long one login may take in all, over all servers.", unit="seconds", ge=1, le=300
    )

    @model_validator(mode="after")
    def _account_has_a_password(self) -> Self:
        if bool(self.bind_dn) != bool(self.bind_password_file):
            raise PydanticCustomError("rule", "bind_dn and bind_password_file go together")
        return self


class Authentication(Table):
    """Who may log in, and who is an admin."""

    method: Literal["ldap", "pam"] = setting(
        "ldap", "Asks the directory (`ldap`) or the machine's own accounts (`pam`)."
    )
    allowed_groups: Texts = setting((), "The groups whose members may log in.")
    admin_groups: Texts = setting((), "The groups whose members are admins; they may log in too.")
    contact: Name = setting(
        "the administrators of the portal", "Whom a user who may not log in is told to ask."
    )
    ldap: Ldap = Ldap()

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> Self:
        if not (self.allowed_groups or self.admin_groups):
            raise PydanticCustomError(
                "rule", "allowed_groups or admin_groups must name a group, or nobody can log in"
            )
        return self

    @model_validator(mode="after")
    def _directory_is_known(self) -> Self:
        needed = ("servers", "user_base", "group_base")
        missing = [key for key in needed if not getattr(self.ldap, key)]
        if self.method == "ldap" and missing:
            keys = ", ".join(f"authentication.ldap.{key}" for key in missing)
            raise PydanticCustomError("rule", 'method = "ldap" needs {keys}', {"keys": keys})
        return self
