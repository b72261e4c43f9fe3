"""What may be changed of a training, on its command line: the same for every framework."""

import argparse
from collections.abc import Sequence

from networks.stages import MODELS


def parser(data: str, models: Sequence[str] | None = MODELS) -> argparse.ArgumentParser:
    """Make the command line; ``data`` says which kinds of data there are.

    ``models``: those to choose from; ``None`` where the program builds others, too.
    """
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="folder for the results; several nodes must share it")
    add("--model", default="50", choices=models, help="layers, or another network")
    add("--data", default="synthetic", help=data)
    add("--mounts", default="", help="mount points, separated by commas: each rank reads from one")
    add("--images", type=int, default=12_800, help="synthetic images in an epoch")
    add(
        "--size",
        type=int,
        default=224,
        help="pixels, height and width of pictures and synthetic images",
    )
    add(
        "--broken",
        default="stop",
        choices=("stop", "skip"),
        help="what to do if a picture in a folder cannot be read; skip: check all of them first",
    )
    add("--epochs", type=int, default=3, help="times that each image is seen; papers: 90")
    add("--steps", type=int, default=0, help="stop after this many steps; 0: after the epochs")
    add("--batch", type=int, default=64, help="images per process and step; more fill a GPU better")
    add("--precision", default="fp32", choices=("fp32", "bf16", "fp16"), help="of the products")
    add("--rate", type=float, default=0.1, help="learning rate for a global batch of 256 images")
    add("--warmup", type=float, default=0.1, help="share of all steps in which the rate rises")
    add("--momentum", type=float, default=0.9, help="of the gradient's running mean")
    add("--decay", type=float, default=5e-5, help="of the weights, not of biases and norms")
    add("--smoothing", type=float, default=0.1, help="share of a label given to all classes")
    add("--seed", type=int, default=1, help="same seed and processes: same training")
    add("--report-every", type=int, default=20, help="steps between two lines of progress")
    add("--checkpoint-every", type=int, default=500, help="steps between checkpoints, at a report")
    add("--mlflow", default="", help="MLflow's experiment in which the run is kept; '': none")
    return parser
