"""A cache for users' accounts and QOS, which queries each user once in a while."""

from jupyterhub_gpu_slurm.shared_answer import SharedAnswer, SharedAnswers
from jupyterhub_gpu_slurm.slurm.associations import Association
from jupyterhub_gpu_slurm.slurm.client import SlurmClient

# An administrator who has given a user an account need not wait for long.
_SECONDS = 60.0
# Whether there is an accounting changes with Slurm's restart only.
_ACCOUNTING_SECONDS = 600.0
_MOST_USERS = 1000
# A database that does not answer is not asked by each form anew.
_RETRY_SECONDS = 30.0


class AssociationCache:
    """Asks ``sacctmgr`` where Slurm has an accounting; nothing is asked where it has none."""

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._accounting = SharedAnswer(client.accounting, _ACCOUNTING_SECONDS, retry_seconds=0)
        self._users = SharedAnswers(
            self._ask, _SECONDS, most=_MOST_USERS, retry_seconds=_RETRY_SECONDS
        )

    async def of(self, username: str) -> tuple[Association, ...]:
        """Return a user's associations. Raises `SlurmError`."""
        return await self._users.get(username)

    async def _ask(self, username: str) -> tuple[Association, ...]:
        accounting = await self._accounting.get()
        if not accounting.is_enabled:
            return ()
        return await self._client.associations(username, accounting.cluster)
