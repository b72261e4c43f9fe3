"""Settings of logins: who may log in, and which directory is asked."""

from typing import Literal, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from dsportal.settings.table import Table, setting
from dsportal.values import (
    AttributeName,
    DirectoryFilter,
    DirectoryUrls,
    DistinguishedName,
    LoginName,
    Name,
    OptionalPath,
    Text,
    Texts,
)


class Ldap(Table):
    """The directory that knows the users and their groups."""

    kind: Literal["posix", "active_directory"] = setting(
        "posix",
        "Whose names are the defaults below: `posix` for OpenLDAP, 389 Directory Server and "
        "FreeIPA, `active_directory` for Active Directory and Samba.",
    )
    servers: DirectoryUrls = setting(
        (), "The directory's servers, which hold the same; the first is asked first."
    )
    start_tls: bool = setting(
        False, "Encrypts ldap:// connections before the password is sent; ldaps:// always is."
    )
    ca_file: OptionalPath = setting(
        "", "The authorities (PEM) that sign the servers' certificates; empty for the system's."
    )
    minimum_tls: Literal["1.2", "1.3"] = setting("1.2", "The oldest version of TLS to speak.")
    accept_unencrypted: bool = setting(
        False,
        "Leaves out the warning that passwords go to another host unencrypted; for a network that "
        "nobody else can listen on.",
    )
    user_base: DistinguishedName = setting("", "The branch of the directory with the users.")
    user_attribute: AttributeName = setting(
        "",
        "The attribute of a user that holds the Unix name; empty: `uid`, or `sAMAccountName` in "
        "Active Directory.",
    )
    user_filter: DirectoryFilter = setting(
        "",
        "What an entry must be to be a user's; empty: any, or `(objectClass=user)` in Active "
        "Directory.",
    )
    group_base: DistinguishedName = setting("", "The branch of the directory with the groups.")
    group_attribute: AttributeName = setting(
        "",
        "The attribute of a group that holds its name; empty: `cn`, or `sAMAccountName` in Active "
        "Directory.",
    )
    group_filter: DirectoryFilter = setting(
        "",
        "Finds the groups of `{userdn}` or `{uid}`; empty: those with the user as `member`, "
        "`uniqueMember` or `memberUid`, or as `member` in Active Directory.",
    )
    nested_groups: bool = setting(
        True,
        "Counts the groups of a user's groups too; with `false`, only those that `group_filter` "
        "finds, and the primary group: `memberOf` may list others.",
    )
    bind_dn: DistinguishedName = setting(
        "",
        "The account that looks users up, and looks again while they are logged in; empty where "
        "users may do it themselves.",
    )
    bind_password_file: OptionalPath = setting(
        "", "The file with the password of `bind_dn`, readable by the hub's user only."
    )
    bind_as: LoginName = setting(
        "",
        "As whom a user logs in to the directory where there is no `bind_dn`; empty: "
        "`user_attribute=NAME,user_base`, or `{name}@realm` in Active Directory.",
    )
    realm: Text = setting(
        "",
        "What may follow a typed name after an @; empty: nothing, or in Active Directory the "
        "domain that `user_base` ends with.",
    )
    connect_timeout_seconds: int = setting(
        3, "How long one server may take to accept a connection.", unit="seconds", ge=1, le=60
    )
    receive_timeout_seconds: int = setting(
        5, "How long one server may take for one answer.", unit="seconds", ge=1, le=60
    )
    next_server_seconds: float = setting(
        1.0,
        "How long a server may be silent until the next one is asked as well.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    login_timeout_seconds: int = setting(
        20, "How long one login may take in all, over all servers.", unit="seconds", ge=1, le=300
    )
    refresh_minutes: float = setting(
        5.0,
        "How often the account and the groups of somebody who is logged in are looked at again, "
        "besides at each start; needs `bind_dn`.",
        unit="minutes",
        ge=0.1,
        le=1440,
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
    minimum_uid: int = setting(
        1000,
        "The lowest Unix number (uid) of somebody who may log in; `root` and the accounts of "
        "services have lower ones.",
        ge=1,
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
