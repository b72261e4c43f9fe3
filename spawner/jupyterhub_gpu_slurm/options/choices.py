"""The form's further choices: account, QOS, reservation, node feature.

Accounts and QOS are those that Slurm's accounting gives the user; reservations and features those
that the site lists. An account or a QOS that the site sets is no choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jupyterhub_gpu_slurm.options.allowance import Allowance
from jupyterhub_gpu_slurm.slurm.associations import Association

LABELS = {
    "account": "Account",
    "qos": "QOS",
    "reservation": "Reservation",
    "constraint": "Node feature",
}
"""A request's keys, and what the form calls them."""


@dataclass(frozen=True)
class ChoiceField:
    """A field of the form with one list to choose from."""

    key: str
    """The request's."""
    unchosen: str
    """What is had without a choice, in words."""
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        """What the form calls it."""
        return LABELS[self.key]


@dataclass(frozen=True)
class Choices:
    """All that one user can choose from."""

    allowance: Allowance
    associations: tuple[Association, ...] = ()

    @property
    def default_account(self) -> str | None:
        """The account that is charged where none is chosen; ``None``: Slurm does not tell."""
        default = (one.account for one in self.associations if one.is_default)
        return self.allowance.account or next(default, None)

    def allowed(
        self, key: str, account: str | None = None, partition: str | None = None
    ) -> frozenset[str]:
        """Return the names that a request may have for a key.

        For ``qos``: those of an account, ``None`` for the default one. Both it and ``account``: in
        one partition, ``None`` for any.
        """
        match key:
            case "account":
                return self._accounts(partition)
            case "qos":
                return self._qos(account, partition)
            case "reservation":
                fixed = self.allowance.reservation
                named = frozenset() if fixed is None else frozenset({fixed})
                return named.union(self.allowance.reservations or ())
        return self.allowance.constraints or frozenset()

    @property
    def qos_of_accounts(self) -> Mapping[str, list[str]]:
        """The QOS of each account; that of an empty name are those where none is chosen."""
        accounts: list[str | None] = [None, *sorted(self._accounts(None))]
        return {account or "": sorted(self._qos(account, None)) for account in accounts}

    @property
    def fields(self) -> tuple[ChoiceField, ...]:
        """What a form shows: only where there is something to choose."""
        accounts = self._accounts(None)
        by_account = self.qos_of_accounts.values()
        all_qos = frozenset().union(*by_account)
        has_qos = any(len(names) > 1 for names in by_account)
        default, fixed = self.default_account, self.allowance.reservation
        choices = (
            (
                "account",
                f"Your default ({default})" if default else "Your default",
                accounts if len(accounts) > 1 else (),
            ),
            ("qos", "The account's default", all_qos if has_qos else ()),
            ("reservation", fixed or "None", self.allowed("reservation") - {fixed}),
            ("constraint", "Any node", self.allowed("constraint")),
        )
        return tuple(
            ChoiceField(key, unchosen, tuple(sorted(names)))
            for key, unchosen, names in choices
            if names
        )

    def _accounts(self, partition: str | None) -> frozenset[str]:
        if self.allowance.account is not None:
            return frozenset({self.allowance.account})
        return frozenset(one.account for one in self._of(partition))

    def _qos(self, account: str | None, partition: str | None) -> frozenset[str]:
        if self.allowance.qos is not None:
            return frozenset({self.allowance.qos})
        charged = account or self.default_account
        found = (one.qos for one in self._of(partition) if charged in (one.account, None))
        return frozenset().union(*found)

    def _of(self, partition: str | None) -> list[Association]:
        return [
            one
            for one in self.associations
            if None in (partition, one.partition) or one.partition == partition
        ]
