"""A session that is over, as the spawner tells the hub's record."""

from datetime import UTC, datetime, timedelta

from jupyterhub_gpu_slurm.session.observation import Ending, SessionNews

ENDED = datetime(2026, 11, 20, 14, 53, tzinfo=UTC)
NEWS = SessionNews(
    session_id="a" * 32,
    user="ada",
    groups=(),
    gpus=2,
    job_id=12,
    partition="sxm2",
    node="node001",
    started=ENDED - timedelta(hours=1),
    seen=ENDED,
    ending=Ending.TIME_LIMIT,
    ended=ENDED,
)
