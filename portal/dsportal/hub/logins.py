"""Login configuration: settings of the directory in, traits of the authenticator out."""

from traitlets.config import Config

from dsportal.settings.whole import Settings


def configure_directory(c: Config, settings: Settings) -> None:
    """Set which directory is asked, how long, and what it calls users and groups."""
    ldap = settings.authentication.ldap
    directory = c.DirectoryAuthenticator
    directory.kind = ldap.kind
    directory.servers = list(ldap.servers)
    directory.tls_strategy = "before_bind" if ldap.start_tls else "insecure"
    directory.ca_file = ldap.ca_file
    directory.minimum_tls = ldap.minimum_tls
    directory.accept_unencrypted = ldap.accept_unencrypted
    directory.user_search_base = ldap.user_base
    directory.group_search_base = ldap.group_base
    directory.nested_groups = ldap.nested_groups
    directory.lookup_dn_search_user = ldap.bind_dn
    directory.lookup_dn_search_password_file = ldap.bind_password_file
    directory.connect_timeout = ldap.connect_timeout_seconds
    directory.receive_timeout = ldap.receive_timeout_seconds
    directory.next_server_seconds = ldap.next_server_seconds
    directory.login_timeout = ldap.login_timeout_seconds
    directory.auth_refresh_age = round(ldap.refresh_minutes * 60)
    # What is empty follows from the kind of directory.
    names = {
        "user_attribute": ldap.user_attribute,
        "user_filter": ldap.user_filter,
        "group_attribute": ldap.group_attribute,
        "group_search_filter": ldap.group_filter,
        "bind_as": ldap.bind_as,
        "realm": ldap.realm,
    }
    directory.update({name: value for name, value in names.items() if value})
