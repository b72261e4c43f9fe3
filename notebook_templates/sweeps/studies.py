"""A study in one file, to which processes on all nodes append: who tries what, and the result.

Optuna's journal needs no database, and its locks hold on NFS (JournalFileSymlinkLock in Optuna's
reference).
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

NAME, JOURNAL = "sweep", "journal.log"
CONTINUES, FOLDER = "continues", "folder"  # what a trial keeps of itself
UNPRUNED_TRIALS = 5
"""So many come to their end before any is pruned."""


class StudyError(ValueError):
    """A folder holds another study than the one that is asked for; the message says which."""


def opened(folder: Path, direction: str, seed: int, unpruned_steps: int) -> optuna.Study:
    """Open the study of a folder, or begin it.

    ``seed``: with the number of trials that there are, what is proposed: a process that comes
    later does not propose the same again.
    ``direction``: "maximize" or "minimize". ``unpruned_steps``: reports of a trial before it may be
    pruned; less than 0: none is.

    Raises `StudyError` where the study has another direction.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if unpruned_steps >= 0:
        pruner = optuna.pruners.MedianPruner(UNPRUNED_TRIALS, unpruned_steps)
    journal = JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
    study = optuna.create_study(
        study_name=NAME,
        storage=journal,
        direction=direction,
        pruner=pruner,
        load_if_exists=True,
    )
    if study.direction != StudyDirection[direction.upper()]:
        raise StudyError(
            f"{folder} has a study with direction = {study.direction.name.lower()!r}, not "
            f"{direction!r}: set another name for this study"
        )
    before = len(study.get_trials(deepcopy=False))
    with warnings.catch_warnings():
        # That constant_liar may change; it keeps trials side by side from being the same.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # NumPy takes no larger one.
        drawn = (seed + 1000 * before) % 2**32
        study.sampler = optuna.samplers.TPESampler(seed=drawn, constant_liar=True)
    return study


def counted(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that are begun, without those that were interrupted and begun again."""
    all_trials = study.get_trials(deepcopy=False)
    again = {trial.user_attrs.get(CONTINUES) for trial in all_trials}
    return [
        trial
        for trial in all_trials
        if trial.number not in again and trial.state != TrialState.WAITING
    ]


def begun(study: optuna.Study, folder: Path, trials: int) -> optuna.Trial | None:
    """Begin a trial, with a folder of its own; ``None`` where there are so many already."""
    with _alone(folder):
        if len(counted(study)) >= trials:
            return None
        trial = study.ask()
        if FOLDER not in trial.user_attrs:
            trial.set_user_attr(FOLDER, str(folder / "trials" / f"{trial.number:04}"))
    Path(trial.user_attrs[FOLDER]).mkdir(parents=True, exist_ok=True)
    return trial


def interrupted(study: optuna.Study, trial: optuna.Trial | FrozenTrial) -> None:
    """Let a trial be begun again, with the same hyper-parameters and the same folder."""
    kept = {name: value for name, value in trial.user_attrs.items() if name == FOLDER}
    study.enqueue_trial(trial.params, kept | {CONTINUES: trial.number})
    study.tell(trial.number, state=TrialState.FAIL)


def interrupt_all(study: optuna.Study) -> int:
    """Let all that run be begun again: for when no process works on them any more."""
    running = study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
    for trial in running:
        interrupted(study, trial)
    return len(running)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    place = folder / "begin"
    place.touch()
    lock = JournalFileSymlinkLock(str(place))
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
