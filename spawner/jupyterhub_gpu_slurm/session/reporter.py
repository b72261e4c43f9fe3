"""Reports a session's events to the metrics and to the site's observer."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.metrics import SessionSample
from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews
from jupyterhub_gpu_slurm.session.record import SessionRecord
from jupyterhub_gpu_slurm.slurm.records import Job, JobState

for _ending in Ending:
    metrics.ENDS.labels(_ending.value)


class SessionReporter:
    """Tells how a session fares: to the hub's metrics, and to the site's observer.

    ``name`` is which of the user's sessions it is, JupyterHub's name of the server. ``observer`` is
    the site's own code, or ``None``.
    """

    def __init__(
        self,
        username: str,
        name: str,
        record: SessionRecord,
        observer: Callable[[SessionNews], object] | None,
        log: logging.Logger | logging.LoggerAdapter[Any],
    ) -> None:
        self._username = username
        self._name = name
        self._record = record
        self._observer = observer
        self.log = log
        self._waits_since: datetime | None = None
        self._is_end_noted = False
        self.last_running: Job | None = None
        """What Slurm said when the job was last seen running."""
        self.ends_unused = False
        """Whether the coming stop is one for want of use."""
        self.is_stopped_by_other = False
        """Whether the coming stop is an administrator's."""

    def begin(self) -> None:
        """Forget what was noted of the session before."""
        self._waits_since = self.last_running = None
        self._is_end_noted = self.ends_unused = self.is_stopped_by_other = False

    def note_submission(self) -> None:
        """Remember when the session was asked for."""
        self._waits_since = datetime.now(UTC)

    def note_job(self, job: Job) -> None:
        """Tell that the session's job runs; nothing for one that waits, or is over."""
        if job.state is not JobState.RUNNING:
            return
        if self.last_running is None and self._waits_since and job.start:
            metrics.WAIT.observe(max(0.0, (job.start - self._waits_since).total_seconds()))
        self.last_running = job
        self._tell(job)

    def note_ready(self) -> None:
        """Note that the session can be used.

        How long the start of one took that was taken over is not known: its hub was away.
        """
        job = self.last_running
        if self._waits_since and job and job.start:
            metrics.START.observe(max(0.0, (datetime.now(UTC) - job.start).total_seconds()))

    def note_stop(self, job: Job | None) -> None:
        """Tell that the session was stopped through the hub."""
        if self.ends_unused:
            ending = Ending.UNUSED
        else:
            ending = Ending.STOPPED_BY_OTHER if self.is_stopped_by_other else Ending.STOPPED
        self.note_end(ending, job)

    def note_end(self, ending: Ending, job: Job | None) -> None:
        """Tell of the session's end, once; ``job`` is what Slurm said last."""
        if self._is_end_noted:
            return
        self._is_end_noted = True
        is_ready = self._record.state.is_ready
        ending = ending if is_ready else Ending.NOT_STARTED
        metrics.ENDS.labels(ending.value).inc()
        job = job or self.last_running
        if job is not None and (self.last_running or is_ready):
            self._tell(job, ending)

    def sample(self, use: str, *, is_stopping: bool) -> SessionSample | None:
        """Return the session as it is now; ``None`` where there is none.

        ``use`` is that of its GPUs, one of `metrics.USES`.
        """
        session = self._record.state
        if not session.id:
            return None
        runs = self.last_running is not None
        if self._record.is_interrupted:
            state = "interrupted"
        elif is_stopping:
            state = "stopping"
        elif session.is_ready:
            state = "running"
        else:
            state = "starting" if runs else "waiting"
        held = (session.gpus or 0) if session.is_ready or runs else 0
        return SessionSample(state, held, use, self._waited() if state == "waiting" else 0.0)

    def _waited(self) -> float:
        # The hub's end is not the end of a wait.
        asked_at = self._record.state.asked_at
        return datetime.now(UTC).timestamp() - asked_at if asked_at else 0.0

    def _tell(self, job: Job, ending: Ending | None = None) -> None:
        if self._observer is None:
            return
        try:
            self._observer(self._news(job, ending))
        except Exception:
            # The site's own code: no session fails for it.
            self.log.exception("The observer of sessions failed")

    def _news(self, job: Job, ending: Ending | None) -> SessionNews:
        before = self.last_running or job
        state = self._record.state
        return SessionNews(
            session_id=state.id,
            user=self._username,
            groups=state.groups,
            gpus=state.gpus or 0,
            job_id=job.job_id,
            partition=job.partition or before.partition,
            node=job.node or before.node,
            started=before.start or job.start,
            seen=datetime.now(UTC),
            ending=ending,
            ended=job.end if ending and job.state.is_over else None,
            options=state.options,
            name=self._name,
        )
