"""Database outages: what the hub does meanwhile, and what its pages say.

JupyterHub asks its database on the loop that serves everybody, with one SQLAlchemy session for
days. So nobody asks a database that does not answer: the breaker is *open* then, every request is
answered at once with plain words, and a thread tries until the database is back. What a start or a
stop that was under way has changed meanwhile is kept, and written then.

Glossary. *Away*: a PostgreSQL that refuses, has gone or says nothing; an SQLite file that somebody
else holds. *Owed*: changed in the hub, and not written yet.

Tried with JupyterHub 6.1.1 and SQLAlchemy 2.1.9.
"""

import logging
from collections.abc import Sequence
from functools import wraps
from typing import Any

from jupyterhub import orm
from jupyterhub.handlers.base import BaseHandler
from sqlalchemy import event, inspect, select
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from dsportal.hub.breaker import Breaker, DatabaseAway
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner

log = logging.getLogger("JupyterHub")
_SHORT_PATIENCE_SECONDS = 0.3


class DatabaseSession(Session):
    """The hub's session with the database; it keeps changes that cannot be written yet.

    A row that is new is refused while the database is away: whoever made it needs its number.
    """

    def __init__(self, breaker: Breaker, **options: Any) -> None:
        super().__init__(**options)
        self.breaker = breaker
        breaker.settle = self.settle
        self._owed: dict[object, dict[str, Any]] = {}
        self._owed_deletions: set[object] = set()
        self._has_sent = False
        event.listen(self, "do_orm_execute", self._refuse)

    def flush(self, objects: Sequence[Any] | None = None) -> None:
        """Write what has changed, if the database lets us; else nothing is lost by having tried."""
        if self._may_write():
            self._has_sent |= bool(self.new or self.dirty or self.deleted)
            super().flush(objects)

    def commit(self) -> None:
        """Write all; what cannot be written now is written once the database is back."""
        self.flush()
        if not self.breaker.is_away:
            self._commit()
        elif self.new:
            for one in list(self.new):
                self.expunge(one)
            raise DatabaseAway

    def _commit(self) -> None:
        try:
            super().commit()
        except (DBAPIError, DatabaseAway):
            # Where nothing was sent there was nothing to lose.
            if self._has_sent or not self.breaker.is_away:
                raise
        self._has_sent = False

    def rollback(self) -> None:
        """Undo; while the database is away there is nothing to undo, and what is owed is kept."""
        if not self.breaker.is_away:
            super().rollback()
            self._has_sent = False

    def settle(self) -> bool:
        """Write what is owed, by a new transaction; say whether that went well."""
        self._note_what_is_owed()
        try:
            super().rollback()
            self._take_the_right_to_write()
            for one in filter(self._has_row, self._owed):
                for name, value in self._owed[one].items():
                    setattr(one, name, value)
            for one in filter(self._has_row, self._owed_deletions):
                self.delete(one)
            super().commit()
        except (SQLAlchemyError, DatabaseAway) as error:
            why = error.orig if isinstance(error, DBAPIError) else error
            log.warning("Pending changes could not be written to the database yet: %s", why)
            return False
        self._owed, self._owed_deletions = {}, set()
        self._has_sent = False
        return True

    def _has_row(self, one: object) -> bool:
        """Say whether there is still something to change.

        Somebody may have deleted it; and one that was new is no row any more where the database
        went before the commit.
        """
        state = inspect(one)
        table = state.mapper.local_table
        if state.identity is not None:
            keys = zip(state.mapper.primary_key, state.identity, strict=True)
            question = select(table).where(*(key == value for key, value in keys))
            if self.connection().execute(question).first() is not None:
                return True
        log.warning("A change to a row of %s that is gone is dropped", table)
        return False

    def _note_what_is_owed(self) -> None:
        """Add what has changed since: a rollback forgets it, and a settling that fails is one."""
        for one in self.dirty:
            state = inspect(one)
            names = [name for name in state.committed_state if name in state.dict]
            self._owed.setdefault(one, {}).update({name: state.dict[name] for name in names})
        self._owed_deletions.update(self.deleted)

    def _may_write(self) -> bool:
        if self.breaker.is_away:
            return False
        if self.breaker.is_settling or not (self.new or self.dirty or self.deleted):
            return True
        try:
            self._take_the_right_to_write()
        except DBAPIError as error:
            self.breaker.open(error.orig)
            return False
        except DatabaseAway as error:
            self.breaker.open(error)
            return False
        return True

    def _take_the_right_to_write(self) -> None:
        """Have the database answer before anything is sent: what is sent in vain is lost."""
        self.breaker.check_writer()
        connection = self.connection()
        if connection.dialect.name != "sqlite":
            connection.exec_driver_sql("SELECT 1")
        elif not connection.connection.driver_connection.in_transaction:  # type: ignore[union-attr]
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _refuse(self, _: ORMExecuteState) -> None:
        # Others read an SQLite file while somebody writes.
        if self.breaker.is_asked_first:
            self.breaker.check()


class PatientSpawner(GpuSlurmSpawner):
    """Hands over to JupyterHub, which then writes down what became of a session, in good time."""

    async def start(self) -> str:
        """Start the session."""
        await self.user.db.breaker.wait()
        url = await super().start()
        await self.user.db.breaker.wait()
        return url

    async def stop(self, now: bool = False) -> None:
        """Stop the session."""
        await super().stop(now)
        await self.user.db.breaker.wait()

    async def poll(self) -> int | None:
        """Say whether the session runs."""
        status = await super().poll()
        if status is not None:
            await self.user.db.breaker.wait()
        return status


def install(breaker: Breaker) -> None:
    """Let the hub use such a session, and every handler look for the database first."""
    _install_session(breaker)
    _install_look()


def _install_session(breaker: Breaker) -> None:
    make = getattr(orm.new_session_factory, "__wrapped__", orm.new_session_factory)

    @wraps(make)
    def make_ours(*arguments: Any, **options: Any) -> sessionmaker[DatabaseSession]:
        kw = make(*arguments, **options).kw

        def note(context: ExceptionContext) -> None:
            if context.is_disconnect:
                breaker.open(context.original_exception)

        event.listen(kw["bind"], "handle_error", note)
        return sessionmaker(
            kw["bind"],
            class_=DatabaseSession,
            expire_on_commit=kw["expire_on_commit"],
            breaker=breaker,
        )

    orm.new_session_factory = make_ours

    ping = getattr(orm.register_ping_connection, "__wrapped__", orm.register_ping_connection)

    @wraps(ping)
    def ping_servers(engine: Engine) -> None:
        # A file of our own is always there: no SELECT before each transaction.
        if engine.dialect.name != "sqlite":
            ping(engine)

    orm.register_ping_connection = ping_servers


def _install_look() -> None:
    prepare = getattr(BaseHandler.prepare, "__wrapped__", BaseHandler.prepare)

    @wraps(prepare)
    async def look_first(self: BaseHandler) -> None:
        try:
            await ensure_answer(self.db)
        except DatabaseAway:
            # The error's page is the same for all readers, and leaves the cookies as they are.
            self._jupyterhub_user, self.expanded_scopes, self.parsed_scopes = None, set(), {}
            self._xsrf_token = b""
            raise
        await prepare(self)

    BaseHandler.prepare = look_first


async def ensure_answer(session: DatabaseSession) -> None:
    """Return when the database can be asked on the loop; raises `DatabaseAway` when it cannot."""
    breaker = session.breaker
    if breaker.is_asked_first and not breaker.is_open:
        trouble = await breaker.trouble()
        if trouble:
            breaker.open(trouble)
        elif not breaker.is_open:
            # JupyterHub would take a user for a stranger when the first to find a connection dead
            # is the question who it is.
            try:
                session.execute(select(1))
            except (SQLAlchemyError, DatabaseAway) as error:
                breaker.open(error)
    if breaker.is_open and not await breaker.is_back(_SHORT_PATIENCE_SECONDS):
        raise DatabaseAway
