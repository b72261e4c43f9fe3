"""Experiment tracking with MLflow: the variables that say where runs are recorded.

Files in one folder of the user's, not a database. MLflow keeps that store as it is and lets nobody
use it unasked (maintenance mode, 3.17), but what a database needs is not to be had here: every
kernel and job of a user would need the very version that its tables have, where sessions outlive
upgrades and users bring environments of their own; locks have to work on the homes' file server;
and a client that writes into SQLite puts a run's files into the folder that it happens to be in.
"""

import logging

from dsportal.session.own_environments.records import OwnEnvironmentError, folder_from

log = logging.getLogger(__name__)


def mlflow_variables(setting: str, home: str, user: str) -> dict[str, str]:
    """Return what tells MLflow of a user's folder of runs; nothing where there is to be none.

    >>> mlflow_variables("~/mlflow", "/home/ann", "ann")["MLFLOW_TRACKING_URI"]
    'file:///home/ann/mlflow'
    """
    if not setting:
        return {}
    try:
        uri = folder_from(setting, home, user).as_uri()
    except OwnEnvironmentError as error:
        log.warning("No folder for MLflow's runs: %s", error)
        return {}
    return {
        "MLFLOW_TRACKING_URI": uri,
        # What `mlflow server` shows: the launcher's card, or one that a user starts.
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }
