"""What MLflow is told of a user's folder of runs."""

import pytest

from dsportal.session.environment import Account, session_environment
from dsportal.session.tracking import mlflow_variables

ACCOUNT = Account("ann", "/home/ann", "/bin/bash")


@pytest.mark.parametrize(
    ("setting", "uri"),
    [
        ("~/mlflow", "file:///home/ann/mlflow"),
        ("/mnt/isilon/{user}/runs", "file:///mnt/isilon/ann/runs"),
    ],
)
def test_runs_are_in_a_folder_of_the_users(setting: str, uri: str) -> None:
    variables = mlflow_variables(setting, "/home/ann", "ann")
    assert variables["MLFLOW_TRACKING_URI"] == variables["MLFLOW_BACKEND_STORE_URI"] == uri


def test_nobody_else_hears_of_runs() -> None:
    variables = mlflow_variables("~/mlflow", "/home/ann", "ann")
    assert (variables["MLFLOW_DISABLE_TELEMETRY"], variables["DO_NOT_TRACK"]) == ("true", "true")


@pytest.mark.parametrize("setting", ["", "/mnt/../{user}"])
def test_without_a_folder_mlflow_is_told_nothing(setting: str) -> None:
    assert mlflow_variables(setting, "/home/ann", "ann") == {}


def test_a_place_that_the_site_gives_all_sessions_wins() -> None:
    ours = mlflow_variables("~/mlflow", "/home/ann", "ann")
    given = {"MLFLOW_TRACKING_URI": "https://mlflow.example.org"}
    environment = session_environment(ACCOUNT, {}, given, defaults=ours)
    assert environment["MLFLOW_TRACKING_URI"] == "https://mlflow.example.org"
    environment = session_environment(ACCOUNT, {}, {}, defaults=ours)
    assert environment["MLFLOW_TRACKING_URI"] == "file:///home/ann/mlflow"
