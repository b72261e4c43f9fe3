"""What a sweep tries in tests: trials that last until they are let go on.

They note each beginning in their folder, so that a test sees which were begun again.
"""

WAITING = """
import time
from pathlib import Path

def waiting(trial):
    x = trial.suggest_float("x", -1, 1)
    folder = Path(trial.user_attrs["folder"])
    with (folder / "begun").open("a") as file:
        print(x, file=file)
    while not (folder.parent.parent / "go").exists():
        time.sleep(0.05)
    return x
"""
