"""A session as the site's metrics and records see it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from weakref import WeakSet

from traitlets import Callable, Float
from traitlets.config import Application

from jupyterhub_gpu_slurm import metrics
from jupyterhub_gpu_slurm.idling import Idling
from jupyterhub_gpu_slurm.metrics import ClusterSample, Moment, SessionSample
from jupyterhub_gpu_slurm.observation import Ending, SessionNews
from jupyterhub_gpu_slurm.slurm.records import Job, JobState
from jupyterhub_gpu_slurm.traits import Slurm

for _ending in Ending:
    metrics.ENDS.labels(_ending.value)


class Observed(Idling):
    """Tells how its session fares: to the hub's metrics, and to the site's observer."""

    session_observer = Callable(
        None,
        allow_none=True,
        help="""
        A function that hears of sessions: it is called with a
        ``jupyterhub_gpu_slurm.observation.SessionNews`` each time a session's job is seen running,
        and once when it has ended. It is called on the hub's event loop and must return at once.
        What it raises is logged, and changes nothing.
        """,
    ).tag(config=True)

    idle_gpu_minutes = Float(
        30.0, help="Minutes without use after which a session's GPUs count as idle in the metrics."
    ).tag(config=True)

    _all: ClassVar["WeakSet[Observed]"] = WeakSet()
    _waits_since: datetime | None = None
    _last_running: Job | None = None
    _is_end_noted = False
    _ends_unused = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        Observed._all.add(self)

    def _begin_observation(self) -> None:
        """Forget what was noted of the session before."""
        self._waits_since = self._last_running = None
        self._is_end_noted = self._ends_unused = False

    def _note_submission(self) -> None:
        self._waits_since = datetime.now(UTC)

    def _note_job(self, job: Job) -> None:
        """Tell that the session's job runs; nothing for one that waits, or is over."""
        if job.state is not JobState.RUNNING:
            return
        if self._last_running is None and self._waits_since and job.start:
            metrics.WAIT.observe(max(0.0, (job.start - self._waits_since).total_seconds()))
        self._last_running = job
        self._tell(job)

    def _note_ready(self) -> None:
        """Note that the session can be used.

        How long the start of one took that was taken over is not known: its hub was away.
        """
        job = self._last_running
        if self._waits_since and job and job.start:
            metrics.START.observe(max(0.0, (datetime.now(UTC) - job.start).total_seconds()))

    def note_unused(self) -> bool:
        """Remember that the coming stop is not the user's."""
        self._ends_unused = super().note_unused()
        return self._ends_unused

    def _note_stop(self, job: Job | None) -> None:
        """Tell that the session was stopped through the hub."""
        self._note_end(Ending.UNUSED if self._ends_unused else Ending.STOPPED, job)

    def _note_end(self, ending: Ending, job: Job | None) -> None:
        """Tell of the session's end, once; ``job`` is what Slurm said last."""
        if self._is_end_noted:
            return
        self._is_end_noted = True
        ending = ending if self.is_ready else Ending.NOT_STARTED
        metrics.ENDS.labels(ending.value).inc()
        job = job or self._last_running
        if job is not None and (self._last_running or self.is_ready):
            self._tell(job, ending)

    def _tell(self, job: Job, ending: Ending | None = None) -> None:
        if self.session_observer is None:
            return
        try:
            self.session_observer(self._news(job, ending))
        except Exception:
            # The site's own code: no session fails for it.
            self.log.exception("The observer of sessions failed")

    def _news(self, job: Job, ending: Ending | None) -> SessionNews:
        before = self._last_running or job
        return SessionNews(
            session_id=self.session_id,
            user=self.user.name,
            groups=tuple(self.session_groups),
            gpus=self.held_gpus or 0,
            job_id=job.job_id,
            partition=job.partition or before.partition,
            node=job.node or before.node,
            started=before.start or job.start,
            seen=datetime.now(UTC),
            ending=ending,
            ended=job.end if ending and job.state.is_over else None,
        )

    def sample(self) -> SessionSample | None:
        """Return the session as it is now; ``None`` where there is none.

        JupyterHub makes a new spawner after each stop; the one before does not count.
        """
        is_current = self.user is not None and self.user.spawners.get(self.name) is self
        if not (is_current and self.session_id):
            return None
        holds = self.is_ready or self._last_running is not None
        state, waited = self._state(), timedelta(0)
        if state == "waiting" and self._waits_since:
            waited = datetime.now(UTC) - self._waits_since
        gpus = (self.held_gpus or 0) if holds else 0
        return SessionSample(state, gpus, self._use(), waited.total_seconds())

    def _state(self) -> str:
        if self._is_interrupted:
            return "interrupted"
        if self.pending == "stop":
            return "stopping"
        if self.is_ready:
            return "running"
        return "starting" if self._last_running else "waiting"

    def _use(self) -> str:
        if self._idle_report is None:
            return "unknown"
        is_idle = self._idle_report.idle >= timedelta(minutes=self.idle_gpu_minutes)
        return "idle" if is_idle else "used"


def _sessions() -> Iterator[SessionSample]:
    for spawner in list(Observed._all):
        sample = spawner.sample()
        if sample is not None:
            yield sample


def _cluster() -> ClusterSample | None:
    """Return what Slurm said last, and have it asked again: whoever reads metrics is a viewer."""
    slurm = Observed._shared or _slurm_of_hub()
    if slurm is None:
        return None
    slurm.nodes.look()
    if slurm.nodes.is_answering is None:
        return None
    last = slurm.nodes.last
    return ClusterSample(slurm.nodes.is_answering, last.gpus_by_state() if last else {})


def _slurm_of_hub() -> Slurm | None:
    """Return the way to Slurm of a hub that has not met a user yet, made from its settings."""
    hub = Application.instance() if Application.initialized() else None
    kind = getattr(hub, "spawner_class", None)
    if hub is None or not (isinstance(kind, type) and issubclass(kind, Observed)):
        return None
    return kind(config=hub.config)._slurm


metrics.register(Moment(_sessions, _cluster))
