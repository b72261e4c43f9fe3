"""Settings of the hub's record of sessions."""

from dsportal.settings.table import Table, setting


class Usage(Table):
    """The hub's record of who held GPUs when: `usage.sqlite` in `hub.state_dir`."""

    keep_months: int = setting(
        13,
        "How long a session stays in the record after its end; a month is 31 days.",
        unit="months",
        ge=1,
        le=120,
    )
