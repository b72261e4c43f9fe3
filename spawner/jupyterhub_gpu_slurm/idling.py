"""A session that nobody uses: what it says of itself, and its end."""

from datetime import UTC, datetime, timedelta
from typing import Any

from jupyterhub_gpu_slurm import idle
from jupyterhub_gpu_slurm.idle import IdleReport
from jupyterhub_gpu_slurm.lifetime import Lifetime


class Idling(Lifetime):
    """Hears for how long a session was not used, and lets the hub's culler end it.

    JupyterHub's own ``last_activity`` is of no help: the requests of an open page count as
    activity there, and a cell that runs with no page open does not.
    """

    _idle_report: IdleReport | None = None

    async def take_idle(self, seconds: int) -> dict[str, int | None]:
        """Take the session's word; return what holds for it."""
        limit = idle.limit_for(self.idle_minutes, self.group_idle_minutes, await self._groups())
        self._idle_report = IdleReport(timedelta(seconds=seconds), datetime.now(UTC), limit)
        warning = idle.warning_for(limit, self.idle_warning_minutes)
        return {
            "limit_seconds": None if limit is None else max(1, round(limit.total_seconds())),
            "warning_seconds": round(warning.total_seconds()),
        }

    @property
    def is_unused(self) -> bool:
        """Whether the session is to end because nobody uses it."""
        return self._idle_report is not None and self._idle_report.is_over(datetime.now(UTC))

    def note_unused(self) -> bool:
        """Remember why the session is about to end; ``False`` if it is in use again."""
        if not self.is_unused or self._idle_report is None:
            return False
        self._endings[self._log_name] = idle.ending(self._idle_report)
        self.log.info(
            "The session of %s has not been used for %d s and ends",
            self._log_name,
            self._idle_report.idle.total_seconds(),
        )
        return True

    def get_state(self) -> dict[str, Any]:
        """Add what the culler goes by, and what the cluster page shows; a restart forgets both."""
        state: dict[str, Any] = super().get_state()
        report = self._idle_report
        if report is not None:
            state["idle_seconds"] = round(report.idle.total_seconds())
            state["idle_heard_at"] = report.heard_at.isoformat()
        return {**state, "is_unused": True} if self.is_unused else state
