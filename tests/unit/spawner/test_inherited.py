"""Options of batchspawner, JupyterHub and jupyterhub_moss: obeyed, or refused by name."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from batchspawner import BatchSpawnerBase, SlurmSpawner, batchspawner
from batchspawner.api import BatchSpawnerAPIHandler
from jupyterhub.spawner import Spawner
from traitlets import Bool, Dict, HasTraits, TraitError, Type, Unicode
from traitlets.config import Application, Config, Configurable

import jupyterhub_gpu_slurm
from jupyterhub_gpu_slurm import hub_api
from jupyterhub_gpu_slurm.inherited import INSTEAD, OBEYED, OTHERS, KnownOptions, duration, mistakes
from jupyterhub_gpu_slurm.spawner import GpuSlurmSpawner
from jupyterhub_gpu_slurm.traits import SpawnerTraits

KNOWN = KnownOptions.of(GpuSlurmSpawner)
SPAWNERS: set[type[HasTraits]] = {
    kind
    for kind in vars(batchspawner).values()
    if isinstance(kind, type) and issubclass(kind, BatchSpawnerBase)
}
PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/come-from-batchspawner-or-moss.md"
# JupyterHub's own that do here what its documentation says.
JUPYTERHUBS = {
    "apply_user_options",
    "auth_state_hook",
    "consecutive_failure_limit",
    "default_url",
    "env_keep",
    "environment",
    "group_overrides",
    "http_timeout",
    "hub_connect_url",
    "oauth_client_allowed_scopes",
    "oauth_roles",
    "options_form",
    "options_from_form",
    "poll_interval",
    "poll_jitter",
    "post_stop_hook",
    "pre_spawn_hook",
    "progress_ready_hook",
    "server_token_scopes",
    "start_timeout",
}


def settable(kind: type[HasTraits]) -> set[str]:
    return set(kind.class_own_traits(config=True))


def test_of_each_option_that_can_be_set_it_is_decided_whether_it_holds() -> None:
    ours = settable(SpawnerTraits)
    assert SlurmSpawner in SPAWNERS
    theirs = set().union(*(kind.class_traits(config=True) for kind in SPAWNERS))
    # Those that cannot be set in the configuration: batchspawner makes them itself.
    theirs |= {name for name in BatchSpawnerBase.class_own_traits() if name.startswith("req_")}
    assert theirs <= ours | JUPYTERHUBS | set(OBEYED) | set(INSTEAD)
    assert not set(INSTEAD) & (set(OBEYED) | ours | JUPYTERHUBS)
    assert set(OBEYED) <= set(GpuSlurmSpawner.class_traits(config=True))


def test_the_page_has_a_row_for_each() -> None:
    text = PAGE.read_text("utf-8")
    for name, words in {**OBEYED, **INSTEAD}.items():
        assert f"| `{name}` | {words} |" in text


def test_the_page_shows_what_the_hub_says() -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert mistakes(Config({"SlurmSpawner": {"req_gres": "gpu:1"}}), KNOWN) == [shown.strip()]


@pytest.mark.parametrize("section", ["GpuSlurmSpawner", "BatchSpawnerBase", "Spawner"])
def test_what_would_have_no_effect_is_named_with_what_to_set(section: str) -> None:
    config = Config({section: {"mem_limit": "8G", "environment": {"A": "b"}}})
    (words,) = mistakes(config, KNOWN)
    assert words.startswith(f"c.{section}.mem_limit has no effect: ")
    assert "`memory_mb_per_gpu`" in words


def test_what_was_written_for_another_spawner_is_named() -> None:
    config = Config({"SlurmSpawner": {"req_qos": "high", "req_gres": "gpu:1"}})
    config.MOSlurmSpawner.partitions = {}
    first, second, third = mistakes(config, KNOWN)
    assert first.startswith("c.MOSlurmSpawner.partitions has no effect: the form asks Slurm")
    assert "c.SlurmSpawner.req_gres has no effect: the user chooses" in second
    assert third == "c.SlurmSpawner.req_qos has no effect: write c.GpuSlurmSpawner.req_qos."


def test_none_of_batchspawners_spawners_is_forgotten() -> None:
    assert {kind.__name__ for kind in SPAWNERS} - KNOWN.sections <= set(OTHERS)


@pytest.mark.parametrize(
    ("section", "option", "words"),
    [
        (
            "BatchSpawnerRegexStates",
            "state_exechost_exp",
            "has no effect: Slurm's output is parsed",
        ),
        ("GpuSlurmSpawner", "state_exechost_exp", "has no effect: Slurm's output is parsed"),
        ("MultiSlurmSpawner", "daemon_resolver", "has no effect: a node is reached"),
        ("MultiSlurmSpawner", "req_qos", "has no effect: write c.GpuSlurmSpawner.req_qos."),
        ("TorqueSpawner", "req_qeue", "is not an option of GpuSlurmSpawner"),
        ("BatchSpawnerBase", "req_keepvars", "has no effect: a session starts with an empty"),
        ("Spawner", "req_username", "has no effect: a session's job belongs to its user."),
        ("Spawner", "req_homedir", "has no effect: a session shows its user's home."),
        (
            "GpuSlurmSpawner",
            "idle_minuets",
            "is not an option of GpuSlurmSpawner; did you mean idle_minutes?",
        ),
        ("Spawner", "enviroment", "did you mean environment?"),
        ("BatchSpawnerBase", "colour", "is not an option of GpuSlurmSpawner."),
    ],
)
def test_what_no_spawner_would_read_is_named(section: str, option: str, words: str) -> None:
    (mistake,) = mistakes(Config({section: {option: "x"}}), KNOWN)
    assert mistake.startswith(f"c.{section}.{option} ")
    assert words in mistake


class Mixin(Configurable):
    """Of a site's, for its spawner."""

    greets = Bool().tag(config=True)


class SitesSpawner(Mixin, GpuSlurmSpawner):
    """A site's own, with options of its own."""

    colour = Unicode().tag(config=True)
    notebook_dir = Unicode().tag(config=True)


def test_what_a_sites_own_spawner_and_its_mixins_declare_are_options() -> None:
    config = Config({"Mixin": {"greets": True}, "GpuSlurmSpawner": {"hub_mark": "a"}})
    config.SitesSpawner.update(
        {"colour": "red", "notebook_dir": "/srv", "greets": True, "cmd": ["x"]}
    )
    (mistake,) = mistakes(config, KnownOptions.of(SitesSpawner))
    assert mistake.startswith("c.SitesSpawner.cmd has no effect: ")


def test_what_all_classes_have_in_common_is_not_looked_at() -> None:
    assert mistakes(Config({"LoggingConfigurable": {"of_another": 1}}), KNOWN) == []


def overrides(**values: object) -> dict[str, object]:
    """Return JupyterHub's `group_overrides` with values for one group."""
    return {"03-students": {"groups": ["students"], "spawner_override": values}}


def test_overrides_of_a_group_are_checked_like_options() -> None:
    given = overrides(mem_limit="2G", req_gres="gpu:1", enviroment={}, environment={"A": "b"})
    found = mistakes(Config({"Spawner": {"group_overrides": given}}), KNOWN)
    where = "c.Spawner.group_overrides['03-students']: "
    assert [words.removeprefix(where).split(":")[0] for words in found] == [
        "enviroment is not an option of GpuSlurmSpawner; did you mean environment?",
        "mem_limit has no effect",
        "req_gres has no effect",
    ]


def test_overrides_that_are_added_to_a_configuration_are_checked_too() -> None:
    config = Config()
    config.GpuSlurmSpawner.group_overrides.update(overrides(mem_limit="2G"))
    (mistake,) = mistakes(config, KNOWN)
    assert "['03-students']: mem_limit has no effect" in mistake


def test_an_override_of_what_all_sessions_share_is_a_mistake() -> None:
    given = overrides(end_timeout=5, slurm_operator="slurm", queue_timeout=60)
    found = mistakes(Config({"Spawner": {"group_overrides": given}}), KNOWN)
    assert [words.partition("]: ")[2] for words in found] == [
        "end_timeout holds for the whole hub: set c.GpuSlurmSpawner.end_timeout.",
        "slurm_operator holds for the whole hub: set c.GpuSlurmSpawner.slurm_operator.",
    ]


def test_overrides_with_an_effect_and_a_function_are_no_mistakes() -> None:
    given = overrides(default_gpus=2, user_options={"gpus": 1}, environment={"A": "b"})
    for value in (given, lambda spawner: given):
        assert mistakes(Config({"Spawner": {"group_overrides": value}}), KNOWN) == []


def test_the_same_thing_set_twice_is_a_mistake() -> None:
    config = Config({"GpuSlurmSpawner": {"default_partition": "a"}})
    config.BatchSpawnerBase.req_partition = "b"
    (mistake,) = mistakes(config, KNOWN)
    for name in ("req_partition", "default_partition"):
        assert name in mistake


def test_what_is_obeyed_is_no_mistake() -> None:
    assert mistakes(Config({"GpuSlurmSpawner": dict.fromkeys(OBEYED, "")}), KNOWN) == []


class Hub(Application):
    """What of JupyterHub tells a spawner that it was chosen."""

    spawner_class = Type(Spawner, klass=Spawner).tag(config=True)
    tornado_settings = Dict()


@pytest.fixture
def hub() -> Iterator[Hub]:
    yield Hub.instance()
    Hub.clear_instance()


def test_a_hub_with_a_mistake_ends_with_its_name(hub: Hub) -> None:
    hub.update_config(Config({"Spawner": {"cmd": ["jupyter-labhub"]}}))
    hub.spawner_class = jupyterhub_gpu_slurm.GpuSlurmSpawner
    with pytest.raises(SystemExit, match=r"c\.Spawner\.cmd has no effect: .*session_python"):
        hub.tornado_settings = {"log": "made"}


def test_a_hub_with_another_spawner_keeps_its_api(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = [(r"/api/batchspawner", BatchSpawnerAPIHandler)]
    monkeypatch.setattr(hub_api, "default_handlers", handlers := list(theirs))
    assert jupyterhub_gpu_slurm.GpuSlurmSpawner is GpuSlurmSpawner
    hub.update_config(Config({"Spawner": {"cmd": ["jupyter-labhub"]}}))
    hub.spawner_class, hub.tornado_settings = SlurmSpawner, {"log": "made"}
    assert handlers == theirs


def test_a_hub_with_this_one_has_its_api_once(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = [(r"/api/batchspawner", BatchSpawnerAPIHandler)]
    monkeypatch.setattr(hub_api, "default_handlers", handlers)
    for _ in range(2):
        hub.spawner_class = jupyterhub_gpu_slurm.GpuSlurmSpawner
    for name in ("given", "made"):
        hub.tornado_settings = {"log": name}
    assert handlers == list(hub_api.HANDLERS)


def test_nothing_else_is_to_be_had_from_the_package() -> None:
    with pytest.raises(AttributeError, match="SlurmSpawner"):
        _ = jupyterhub_gpu_slurm.SlurmSpawner


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("90", 1.5),
        ("90:00", 1.5),
        ("8:00:00", 8),
        ("0:30:00", 0.5),
        ("1-0", 24),
        ("1-12", 36),
        ("1-12:30", 36.5),
        ("2-00:00:00", 48),
    ],
)
def test_times_are_those_of_sbatch(text: str, hours: float) -> None:
    assert duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "8h", "-1", "1:2:3:4", "1-", "8:00:00\n", "1-1-1"])
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        duration(text)


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("req_account", "a b"),
        ("req_qos", "x\ny"),
        ("req_reservation", "-r"),
        ("req_runtime", "8h"),
        ("req_options", "--gres=gpu:8"),
    ],
)
def test_a_value_that_slurm_would_not_take_is_refused(trait: str, value: str) -> None:
    with pytest.raises(TraitError, match=trait):
        GpuSlurmSpawner(**{trait: value})
