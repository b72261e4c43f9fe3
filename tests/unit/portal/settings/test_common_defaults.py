"""Settings of the portal that are options of the spawner: one default for both."""

import pytest

from dsportal.settings.idle import Idle
from dsportal.settings.monitoring import Monitoring
from dsportal.settings.slurm import SlurmSettings
from dsportal.settings.table import Table
from jupyterhub_gpu_slurm.traits import SpawnerTraits


@pytest.mark.parametrize(
    ("table", "key", "option"),
    [
        (SlurmSettings, "config_file", "slurm_conf"),
        (SlurmSettings, "bin_dir", "slurm_bin_dir"),
        (SlurmSettings, "query_interval_seconds", "query_interval"),
        (SlurmSettings, "quiet_interval_seconds", "quiet_interval"),
        (SlurmSettings, "cluster_interval_seconds", "cluster_interval"),
        (SlurmSettings, "launches_at_once", "launches_at_once"),
        (SlurmSettings, "command_timeout_seconds", "command_timeout"),
        (SlurmSettings, "offer_accounts", "offer_accounts"),
        (Idle, "warning_minutes", "idle_warning_minutes"),
        (Monitoring, "idle_gpu_minutes", "idle_gpu_minutes"),
    ],
)
def test_a_setting_and_the_spawners_option_have_one_default(
    table: type[Table], key: str, option: str
) -> None:
    assert table.model_fields[key].default == SpawnerTraits.class_traits()[option].default_value
