"""What a sweep tries, as Optuna wants it: copy this file and put your training in its place.

A function takes a trial, asks it for hyper-parameters (`suggest_float`, `suggest_int`,
`suggest_categorical`) and returns the value that is to be high or low. With `report` and
`should_prune`, a trial that falls behind the others ends early.
"""

from pathlib import Path

import optuna
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.tensorboard import SummaryWriter

EPOCHS, BATCH = 12, 64


def objective(trial: optuna.Trial) -> float:
    """Learn handwritten digits; return the accuracy on those that were held out."""
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    width = trial.suggest_categorical("width", [16, 32, 64, 128])
    dropout = trial.suggest_float("dropout", 0.0, 0.6)

    # Where a trial that was interrupted goes on: its next attempt has the same folder.
    folder = Path(trial.user_attrs["folder"])
    checkpoint = folder / "checkpoint.pt"

    torch.manual_seed(1)
    images, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    images, labels = images.float() / 16, labels.long()
    test = torch.arange(len(labels)) % 5 == 0
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    first, accuracy = 0, 0.0
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first, accuracy = kept["epoch"], kept["accuracy"]

    # What an earlier attempt drew after its checkpoint is left out.
    with SummaryWriter(folder / "tensorboard", purge_step=first) as curves:
        for epoch in range(first, EPOCHS):
            torch.manual_seed(epoch)
            model.train()
            for chosen in torch.randperm(int((~test).sum())).split(BATCH):
                logits = model(images[~test][chosen])
                loss = nn.functional.cross_entropy(logits, labels[~test][chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                accuracy = (model(images[test]).argmax(1) == labels[test]).float().mean().item()
            curves.add_scalar("accuracy", accuracy, epoch)
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            # All of it, or the one before: a trial may be ended at any moment.
            new = checkpoint.with_suffix(".new")
            torch.save(kept | {"epoch": epoch + 1, "accuracy": accuracy}, new)
            new.replace(checkpoint)
            trial.report(accuracy, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
    return accuracy
