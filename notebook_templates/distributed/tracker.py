"""A training as a run in MLflow: parameters, values at each report, and where its folder is.

All of it is written in a thread of its own, so no step waits. What goes wrong there ends the
keeping, which is said in the log, and never the training.
"""

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CLOSING_SECONDS = 30.0
"""How long a training waits at its end for what is not written yet."""
_MOST_CHARACTERS = 500  # of a parameter, as older servers of MLflow take it


class Tracker:
    """A run in MLflow, which a training in the same folder goes on with."""

    def __init__(
        self,
        experiment: str,
        results: Path,
        parameters: Mapping[str, object],
        say: Callable[[str], None],
    ) -> None:
        """Begin the run, or go on with the one whose id the folder has in mlflow.json."""
        self._experiment, self._results = experiment, results
        self._parameters, self._say = parameters, say
        self._waiting: queue.SimpleQueue[tuple[int, int, dict[str, float]] | str] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._keep, name="mlflow", daemon=True)
        self._thread.start()
        _open.append(self)

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Keep values of a step; returns at once."""
        self._waiting.put((step, time.time_ns() // 1_000_000, dict(values)))

    def close(self, status: str) -> None:
        """End the run: ``FINISHED``, ``KILLED`` (it may go on) or ``FAILED``."""
        if self in _open:
            _open.remove(self)
            self._waiting.put(status)
            self._thread.join(CLOSING_SECONDS)
            if self._thread.is_alive():
                self._say(f"MLflow took more than {CLOSING_SECONDS:.0f} s: not all is kept there")

    def _keep(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  # whatever it is, the training goes on
            first = (str(error).splitlines() or [""])[0]
            self._say(f"nothing more is kept in MLflow: {type(error).__name__}: {first}")

    def _write(self) -> None:
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            raise LookupError("MLFLOW_TRACKING_URI is not set, which says where runs are kept")
        # Seconds, the first time on a node; hence here.
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        client = MlflowClient()
        run = self._run(client)
        done: dict[str, int] = {}
        while not isinstance(item := self._waiting.get(), str):
            step, when, values = item
            for name in values.keys() - done.keys():
                kept = client.get_metric_history(run, name)
                done[name] = max((one.step for one in kept), default=-1)
            # What came after a checkpoint was kept before the break, and is the same.
            new = {name: value for name, value in values.items() if step > done[name]}
            client.log_batch(run, [Metric(name, value, when, step) for name, value in new.items()])
        client.set_terminated(run, item)

    def _run(self, client: Any) -> str:
        from mlflow.exceptions import MlflowException

        file = self._results / "mlflow.json"
        uri = os.environ["MLFLOW_TRACKING_URI"]
        known = json.loads(file.read_text()) if file.exists() else {}
        if known.get("uri") == uri:
            try:
                client.update_run(known["run"], status="RUNNING")
            except MlflowException as error:
                self._say(f"starting a new MLflow run, as the last one is gone: {error}")
            else:
                return str(known["run"])
        folder = self._results.resolve()
        found = client.get_experiment_by_name(self._experiment)
        number = found.experiment_id if found else client.create_experiment(self._experiment)
        tags = {"folder": str(folder)}
        if job := os.environ.get("SLURM_JOB_ID"):
            tags["slurm_job"] = job
        run = str(client.create_run(number, tags=tags, run_name=folder.name).info.run_id)
        for name, value in self._parameters.items():
            client.log_param(run, name, str(value)[:_MOST_CHARACTERS])
        file.write_text(json.dumps({"uri": uri, "run": run}))
        return run


_open: list[Tracker] = []


def close_all(status: str) -> None:
    """End the runs that this process has open."""
    for tracker in list(_open):
        tracker.close(status)
