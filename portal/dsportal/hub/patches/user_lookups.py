"""A user who is looked for is asked of the database once, not six times.

JupyterHub's ORM loads a user's roles, groups and shares with every look for the user, five more
queries, and drops what they tell where it is known: always, since the hub keeps its users.

Tried with JupyterHub 6.1.1 and SQLAlchemy 2.1.9.
"""

from typing import Any

from jupyterhub import orm
from jupyterhub.handlers.base import BaseHandler
from sqlalchemy.orm import Session, lazyload

_KNOWN = (orm.User.roles, orm.User.groups, orm.User.shared_with_me)


def one_user(database: Session, condition: Any) -> Any:
    """Return the user for whom this holds, with all that JupyterHub would have loaded."""
    as_known = map(lazyload, _KNOWN)
    user = database.query(orm.User).options(*as_known).filter(condition).first()
    if user is not None:
        # Loaded now where they never were, so that nobody needs the database for them later.
        for each in _KNOWN:
            getattr(user, each.key)
    return user


def _find(kind: type[orm.User], db: Session, name: str) -> Any:
    return one_user(db, kind.name == name)


def _user_for_cookie(self: Any, cookie_name: str, cookie_value: str | None = None) -> Any:
    days = self.cookie_max_age_days
    cookie_id = self.get_secure_cookie(cookie_name, cookie_value, max_age_days=days)
    known_by = (cookie_id or b"").decode(errors="replace")
    found = one_user(self.db, orm.User.cookie_id == known_by) if known_by else None
    if not found:
        # JupyterHub's own says why, and takes the cookie away.
        return _user_for_cookie_of_jupyterhub(self, cookie_name, cookie_value)
    user = self._user_from_orm(found)
    if self._record_activity(user):
        self.db.commit()
    return user


_user_for_cookie_of_jupyterhub = BaseHandler._user_for_cookie


def install() -> None:
    """Put both in the place of JupyterHub's own."""
    orm.User.find = classmethod(_find)
    BaseHandler._user_for_cookie = _user_for_cookie
