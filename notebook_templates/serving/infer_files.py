#!/usr/bin/env python
"""Run a model over a run's files: all that are left, or a job array task's share of them.

    python infer_files.py --results run1 --model ~/logs/vision/NAME/best --data ~/pictures

Images get their likeliest classes; a text file is a prompt, which a language model continues.
Ended by Slurm or by a user, it leaves whole parts (file_results.py); run again, it does the rest.
A file that cannot be read is done, too: its result says why. Only one that the storage did not give
just now is left for the next run.
"""

import argparse
import errno
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "distributed"))
import loaded_models
import model_folders
from completions import RequestError, Sampling, WrittenText
from file_results import (
    FILES,
    PARTS,
    DataFolderError,
    FileResults,
    groups,
    list_files,
    listed,
    part_of,
    shard,
)
from loaded_models import ImageModel
from model_folders import ModelFolderError
from record import Stop, run, write_whole
from text_model import TextModel, Writing

# A file server that does not answer, of storage that is mounted with `soft` (nfs(5)).
_PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT})


def settings() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--results", required=True, help="the run's folder; several nodes must share it")
    add("--model", required=True, help="a model's folder")
    add("--data", required=True, help="a folder of images, or of .txt files with a prompt each")
    add("--batch", type=int, default=32, help="files that are computed, and written, together")
    add("--max-tokens", type=int, default=64, help="that a language model writes for a prompt")
    return parser.parse_args()


def main(s: argparse.Namespace) -> None:
    """Do what is left."""
    stop = Stop()
    folder, data = Path(s.results).expanduser(), Path(s.data).expanduser()
    described = model_folders.described(Path(s.model).expanduser())
    if not (folder / FILES).exists():
        list_files(folder, data, described.kind)
    files = listed(folder)
    task, tasks = place_in_array()
    left = shard(files, FileResults(folder).done(), task, tasks)
    to_do = "1 file" if len(left) == 1 else f"{len(left)} files"
    print(f"task {task + 1} of {tasks}: {to_do} to do", flush=True)
    if not left:
        return
    model = loaded_models.read(described)
    (folder / PARTS).mkdir(exist_ok=True)
    done = missing = 0
    for group in groups(left, s.batch):
        if stop.is_wanted:
            print("interrupted: run again to do the rest", flush=True)
            return
        found = results(model, [data / files[place] for place in group], s.max_tokens)
        have = {group[index]: one for index, one in sorted(found.items())}
        if have:
            write_part(
                folder / PARTS / part_of(list(have)),
                {files[place]: one for place, one in have.items()},
            )
        done += len(have)
        missing += len(group) - len(have)
        print(f"{done} of {len(left)} files done", flush=True)
    if missing:
        print(f"the storage did not give {missing} of the files: run again to do them", flush=True)


def write_part(file: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the results of some files, all of them or none."""
    lines = [json.dumps({"file": name, **one}) for name, one in found.items()]
    content = "".join(f"{line}\n" for line in lines).encode()
    write_whole(file, lambda stream: stream.write(content))


def place_in_array() -> tuple[int, int]:
    """Return this task's number, from 0, and how many there are; the only one without an array."""
    first = int(os.environ.get("SLURM_ARRAY_TASK_MIN", "0"))
    number = int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))
    return number - first, int(os.environ.get("SLURM_ARRAY_TASK_COUNT", "1"))


def results(
    model: TextModel | ImageModel, files: Sequence[Path], max_tokens: int
) -> dict[int, dict[str, Any]]:
    """Return what the model says of each file, or why it cannot, by the files' indices.

    Not of a file that the storage did not give just now.
    """
    read: dict[int, bytes] = {}
    found: dict[int, dict[str, Any]] = {}
    for index, file in enumerate(files):
        try:
            read[index] = file.read_bytes()
        except OSError as error:
            if error.errno not in _PASSING:
                found[index] = {"error": str(error.strerror)}
    for index, answer in zip(read, answers(model, list(read.values()), max_tokens), strict=True):
        if isinstance(answer, RequestError):
            found[index] = {"error": str(answer)}
        elif isinstance(answer, WrittenText):
            found[index] = {"text": answer.text, "is_finished": answer.is_finished}
        else:
            found[index] = {"classes": [asdict(one) for one in answer]}
    return found


def answers(
    model: TextModel | ImageModel, contents: Sequence[bytes], max_tokens: int
) -> Sequence[Any]:
    """Ask the model about all files at once."""
    if not contents:
        return []
    if isinstance(model, ImageModel):
        return model.classified(contents)
    sampling = Sampling(max_tokens=max_tokens, temperature=0.0)
    found: dict[int, Any] = {}
    for index, content in enumerate(contents):
        try:
            found[index] = model.to_continue(content.decode(errors="replace"), sampling)
        except RequestError as error:
            found[index] = error
    writings = {index: one for index, one in found.items() if isinstance(one, Writing)}
    if writings:
        found |= dict(zip(writings, model.written(list(writings.values())), strict=True))
    return [found[index] for index in range(len(contents))]


if __name__ == "__main__":
    run(main, settings(), DataFolderError, ModelFolderError)
