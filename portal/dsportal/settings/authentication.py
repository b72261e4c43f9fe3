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
    """The LDAP directory with the users and their groups."""

    kind: Literal["posix", "active_directory"] = setting(
        "posix",
        "The schema that the defaults below follow: `posix` for OpenLDAP, 389 Directory Server "
        "and FreeIPA, `active_directory` for Active Directory and Samba.",
    )
    servers: DirectoryUrls = setting(
        (), "The directory's servers, all with the same data; the first is tried first."
    )
    start_tls: bool = setting(
        False,
        "Encrypts ldap:// connections before the password is sent; ldaps:// connections are "
        "always encrypted.",
    )
    ca_file: OptionalPath = setting(
        "",
        "The certificate authorities (PEM) that sign the servers' certificates; empty for the "
        "system's.",
    )
    minimum_tls: Literal["1.2", "1.3"] = setting("1.2", "The oldest version of TLS to accept.")
    accept_unencrypted: bool = setting(
        False,
        "Silences the warning that passwords go to another host unencrypted; for a network that "
        "nobody else can listen on.",
    )
    user_base: DistinguishedName = setting("", "The base DN of the search for users.")
    user_attribute: AttributeName = setting(
        "",
        "The attribute of a user's entry that holds the Unix name; empty: `uid`, or "
        "`sAMAccountName` in Active Directory.",
    )
    user_filter: DirectoryFilter = setting(
        "",
        "The LDAP filter that an entry must match to be a user; empty: no filter, or "
        "`(objectClass=user)` in Active Directory.",
    )
    group_base: DistinguishedName = setting("", "The base DN of the search for groups.")
    group_attribute: AttributeName = setting(
        "",
        "The attribute of a group's entry that holds the group's name; empty: `cn`, or "
        "`sAMAccountName` in Active Directory.",
    )
    group_filter: DirectoryFilter = setting(
        "",
        "The LDAP filter that finds the groups of a user, given as `{userdn}` or `{uid}`; empty: "
        "groups with the user as `member`, `uniqueMember` or `memberUid`, or as `member` in "
        "Active Directory.",
    )
    nested_groups: bool = setting(
        True,
        "Whether groups of groups count too. With `false`, only the primary group and the groups "
        "that `group_filter` finds count; `memberOf` may list others.",
    )
    bind_dn: DistinguishedName = setting(
        "",
        "The account that looks users up at login, and again while they are logged in; empty if "
        "users may look themselves up.",
    )
    bind_password_file: OptionalPath = setting(
        "", "The file with the password of `bind_dn`, readable by the hub's user only."
    )
    bind_as: LoginName = setting(
        "",
        "The name with which a user binds if there is no `bind_dn`; empty: "
        "`user_attribute=NAME,user_base`, or `{name}@realm` in Active Directory.",
    )
    realm: Text = setting(
        "",
        "The domain that users may type after their name and an @; empty: none, or in Active "
        "Directory the domain that `user_base` ends with.",
    )
    connect_timeout_seconds: int = setting(
        3, "How long a server may take to accept a connection.", unit="seconds", ge=1, le=60
    )
    receive_timeout_seconds: int = setting(
        5, "How long a server may take to answer a request.", unit="seconds", ge=1, le=60
    )
    next_server_seconds: float = setting(
        1.0,
        "How long to wait for a server's answer before the next one is asked as well.",
        unit="seconds",
        ge=0.1,
        le=60,
    )
    login_timeout_seconds: int = setting(
        20, "How long a login may take in total, over all servers.", unit="seconds", ge=1, le=300
    )
    refresh_minutes: float = setting(
        5.0,
        "How often the account and the groups of a logged-in user are checked again, besides at "
        "each start of a session; needs `bind_dn`.",
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
    """Login: where passwords are checked, and the groups of users and of admins."""

    method: Literal["ldap", "pam"] = setting(
        "ldap",
        "Where passwords are checked: in the directory (`ldap`) or with the machine's own "
        "accounts (`pam`).",
    )
    allowed_groups: Texts = setting((), "The groups whose members may log in.")
    admin_groups: Texts = setting((), "The groups whose members are admins; they may log in too.")
    contact: Name = setting(
        "the administrators of the portal",
        "The people to ask for access; users who may not log in are referred to them.",
    )
    minimum_uid: int = setting(
        1000,
        "The lowest uid that may log in; `root` and service accounts have lower ones.",
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
