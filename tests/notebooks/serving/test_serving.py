"""The model server answers as its models do when they are called themselves."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import model_client
import pytest
from model_client import ModelClient, ModelServerError

from tests.instance import ROOT
from tests.notebooks.model_serving import SERVING, answers, load, serving
from tests.notebooks.running import printed_by
from tests.training import tiny_models
from tests.waiting import until

PROMPTS = ["This License", "is", "free is free This is a longer text than the others"]
GENERATE = """
import json, sys, peft
from transformers import AutoModelForCausalLM, AutoTokenizer
base, adapter, prompts = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
tokenizer = AutoTokenizer.from_pretrained(base)
model = AutoModelForCausalLM.from_pretrained(base)
if adapter:
    model = peft.PeftModel.from_pretrained(model, adapter)
texts = []
for prompt in prompts:
    given = tokenizer(prompt, return_tensors="pt")
    row = model.generate(**given, max_new_tokens=12, do_sample=False, pad_token_id=0)[0]
    texts.append(tokenizer.decode(row[given["input_ids"].shape[1]:], skip_special_tokens=True))
print(json.dumps(texts))
"""
CLASSIFY = """
import json, sys
from pathlib import Path
sys.path[:0] = [f"{sys.argv[1]}/{place}" for place in ("vision", "distributed", "data")]
import classifier, pictures
model = classifier.read(Path(sys.argv[2]))
model.network.eval()
files = json.loads(sys.argv[3])
pixels, _ = pictures.as_bytes([(file, 0) for file in files], model.size)
shares = model.network(model.normal(pixels)).softmax(1)
print(json.dumps([[model.names[row.argmax()], float(row.max())] for row in shares]))
"""
SHAPES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import shapes
shapes.make(Path(sys.argv[2]), 1)
"""
RELOADED = """
import asyncio, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from served_model import ServedModel
from completions import RequestError, Sampling
from model_folders import described

async def load(served):
    served.load(described(Path(sys.argv[2])))
    while served.state == "loading":
        await asyncio.sleep(0.01)

async def main():
    served = ServedModel()
    await load(served)
    has_begun, may_end = threading.Event(), threading.Event()

    def prepare(model):
        has_begun.set()
        may_end.wait(60)
        return [model.to_continue("is", Sampling(max_tokens=2))]

    preparing = asyncio.create_task(served.prepared(prepare))
    await asyncio.to_thread(has_begun.wait, 60)
    await load(served)
    may_end.set()
    (writing,) = await preparing
    try:
        print(await served.write(writing))
    except RequestError as error:
        print(error)

asyncio.run(main())
"""


def output_of(python: Path, code: str, *words: object) -> str:
    argv = [str(python), "-B", "-c", code, *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=200)
    return done.stdout


@pytest.fixture(scope="module")
def python(preloaded: Callable[[str], Path]) -> Path:
    return preloaded("pytorch")


@pytest.fixture(scope="module")
def models(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a language model, an adapter of it, and a network for images."""
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make(
        python,
        tiny_models.text(folder / "text"),
        tiny_models.adapter(folder / "adapter", folder / "text"),
        tiny_models.image(folder / "image"),
    )
    return folder


@pytest.fixture(scope="module")
def drawings(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 images in folders, one of them cut short and one that is a text."""
    folder = tmp_path_factory.mktemp("drawings") / "shapes"
    output_of(python, SHAPES, ROOT / "notebook_templates" / "vision", folder)
    (folder / "val/disc/000.png").write_bytes((folder / "val/disc/001.png").read_bytes()[:90])
    (folder / "val/disc/002.png").write_text("no image")
    return folder / "val"


@pytest.fixture(scope="module")
def server(python: Path, models: Path) -> Iterator[ModelClient]:
    with serving(python, models) as client:
        yield client


@pytest.mark.parametrize("name", ["text", "adapter"])
def test_texts_are_continued_as_by_the_model_itself(
    server: ModelClient, python: Path, models: Path, name: str
) -> None:
    assert load(server, models / name)["model"]["is_adapter"] == (name == "adapter")
    adapter = models / name if name == "adapter" else ""
    wanted = json.loads(output_of(python, GENERATE, models / "text", adapter, json.dumps(PROMPTS)))
    assert len(set(wanted)) == len(PROMPTS)
    asked = {"prompt": PROMPTS, "max_tokens": 12, "temperature": 0}
    answer = server.ask("/v1/completions", asked)
    assert [one["text"] for one in answer["choices"]] == wanted
    assert server.complete(PROMPTS[1], max_tokens=12, temperature=0) == wanted[1]
    word = wanted[0][4:6]
    cut = server.complete(PROMPTS[0], max_tokens=12, temperature=0, stop=word)
    assert cut == wanted[0].partition(word)[0]


def test_the_adapter_writes_something_else_than_its_base(server: ModelClient, models: Path) -> None:
    written = []
    for name in ("text", "adapter"):
        load(server, models / name)
        written.append(server.complete(PROMPTS[0], max_tokens=12, temperature=0))
    assert written[0] != written[1]


def test_a_seed_repeats_what_is_drawn(server: ModelClient, models: Path) -> None:
    load(server, models / "text")
    drawn = [server.complete("is", max_tokens=20, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    with ThreadPoolExecutor(8) as pool:
        beside_others = pool.map(lambda _: server.complete("is", max_tokens=20, seed=1), range(8))
        assert set(beside_others) == {drawn[0]}


def test_a_conversation_is_written_by_the_models_template(
    server: ModelClient, models: Path, tmp_path: Path
) -> None:
    shutil.copytree(models / "text", tmp_path / "chat")
    template = "{% for one in messages %}{{ one.role }} {{ one.content }}<end>{% endfor %}is"
    (tmp_path / "chat" / "chat_template.jinja").write_text(template)
    load(server, tmp_path / "chat")
    messages = [{"role": "user", "content": "This"}, {"role": "assistant", "content": "free"}]
    sampling = {"max_tokens": 12, "temperature": 0}
    answer = server.ask("/v1/chat/completions", {"messages": messages, **sampling})
    (choice,) = answer["choices"]
    written = "user This<end>assistant free<end>is"
    assert choice["message"]["content"] == server.complete(written, **sampling) != ""


def test_requests_that_arrive_together_are_batched(
    server: ModelClient, python: Path, models: Path, drawings: Path
) -> None:
    load(server, models / "image")
    files = [str(file) for file in sorted(drawings.glob("ring/*.png"))]
    wanted = json.loads(output_of(python, CLASSIFY, SERVING.parent, models / "image",
                                  json.dumps(files)))  # fmt: skip
    before = server.state()
    with ThreadPoolExecutor(len(files)) as pool:
        found = list(pool.map(lambda file: server.classify(Path(file).read_bytes()), files))
    after = server.state()
    assert [one[0]["name"] for one in found] == [name for name, _ in wanted]
    assert [one[0]["probability"] for one in found] == pytest.approx(
        [share for _, share in wanted], abs=1e-4
    )
    assert sum(one["probability"] for one in found[0]) == pytest.approx(1, abs=1e-4)
    assert after["requests"] - before["requests"] == len(files)
    assert after["batches"] - before["batches"] < len(files) / 2


def test_what_cannot_be_answered_is_said(server: ModelClient, models: Path, drawings: Path) -> None:
    load(server, models / "image")
    for path, body, said in (
        ("/v1/classify", b"no image", "the image is not a picture"),
        ("/v1/classify", (drawings / "disc/000.png").read_bytes(), "the image"),
        ("/v1/completions", {"prompt": "is"}, "does not write text"),
        ("/load", {"folder": "image"}, "begins with / or ~"),
        ("/load", {"folder": str(drawings)}, r"config\.json cannot be read"),
        ("/load", [], "folder must be"),
        ("/load", b"{", "not JSON"),
        ("/load", b"[" * 100_000, "not JSON"),
        ("/nowhere", b"", "Not Found"),
    ):
        with pytest.raises(ModelServerError, match=said):
            server.ask(path, body)
    load(server, models / "text")
    chat = {"messages": [{"role": "user", "content": "is"}]}
    with pytest.raises(ModelServerError, match=r"'other' is not loaded; '.*/text' is"):
        server.ask("/v1/chat/completions", {"model": "other", **chat})
    with pytest.raises(ModelServerError, match="half a UTF-16 character"):
        server.complete("half a \ud83d")
    with pytest.raises(ModelServerError, match="role is 'tool'; it may be system, user"):
        server.ask("/v1/chat/completions", {"messages": [{"role": "tool", "content": "is"}]})
    with pytest.raises(ModelServerError, match="this model can take 64 together"):
        server.complete("is", max_tokens=100)
    assert server.state()["state"] == "ready"


def test_a_request_has_a_limit(server: ModelClient) -> None:
    # As much as it may be is read, and found to be no picture.
    with pytest.raises(ModelServerError):
        server.ask("/v1/classify", bytes(20 * 2**20))
    with pytest.raises((OSError, ValueError)):
        server.ask("/v1/classify", bytes(20 * 2**20 + 1))
    assert answers(server)


def test_a_damaged_model_is_told_and_another_can_be_loaded(
    server: ModelClient, models: Path, tmp_path: Path
) -> None:
    for file in (models / "text").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(ModelServerError, match="cannot be loaded"):
        load(server, tmp_path)
    assert server.ask("/v1/models") == {"object": "list", "data": []}
    assert load(server, models / "text")["error"] == ""
    assert server.ask("/v1/models")["data"][0]["id"].endswith("/text")


def test_what_one_model_has_prepared_is_not_written_by_the_next(python: Path, models: Path) -> None:
    said = output_of(python, RELOADED, SERVING, models / "text")
    assert said.startswith("another model was loaded ")
    assert len(said.splitlines()) == 1


def infer(python: Path, results: Path, model: Path, data: Path, batch: int) -> list[str]:
    program = SERVING / "infer_files.py"
    argv = [str(python), "-B", str(program), "--results", str(results), "--batch", str(batch)]
    return [*argv, "--model", str(model), "--data", str(data)]


def lines_of(results: Path) -> list[dict[str, Any]]:
    parts = sorted((results / "parts").glob("*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text().splitlines()]


def test_a_batch_that_is_interrupted_goes_on_and_does_no_file_twice(
    python: Path, models: Path, drawings: Path, tmp_path: Path
) -> None:
    results = tmp_path / "run"
    argv = infer(python, results, models / "image", drawings, 1)
    first = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    parts = results / "parts"
    until(
        lambda: len(list(parts.glob("*.jsonl"))) > 4, seconds=120, every=0.01, what="it has begun"
    )
    first.send_signal(signal.SIGTERM)
    said, _ = first.communicate(timeout=60)
    assert "interrupted: run again" in said
    written = {part.name: part.stat().st_mtime_ns for part in parts.glob("*.jsonl")}
    assert 4 < len(written) < 200

    again = infer(python, results, models / "image", drawings, 16)
    done = subprocess.run(again, capture_output=True, text=True, check=True, timeout=120)
    assert f"{200 - len(written)} files to do" in done.stdout
    files = [line["file"] for line in lines_of(results)]
    assert len(files) == len(set(files)) == 200
    assert {name: (parts / name).stat().st_mtime_ns for name in written} == written
    wrong = {line["file"] for line in lines_of(results) if "error" in line}
    assert wrong == {"disc/000.png", "disc/002.png"}
    # Nothing is left, and no model is loaded for that.
    done = subprocess.run(again, capture_output=True, text=True, check=True, timeout=120)
    assert "0 files to do" in done.stdout


# A file server that does not give two files for a while.
SILENT = """
import errno, sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop(1))
import infer_files

read_bytes = Path.read_bytes

def read(file):
    if file.name in ("000.png", "001.png"):
        raise OSError(errno.EIO, "Input/output error")
    return read_bytes(file)

Path.read_bytes = read
infer_files.main(infer_files.settings())
"""


def test_files_that_the_storage_does_not_give_are_done_by_the_next_run(
    python: Path, models: Path, drawings: Path, tmp_path: Path
) -> None:
    argv = infer(python, tmp_path / "run", models / "image", drawings, 2)
    silent = [*argv[:2], "-c", SILENT, str(SERVING), *argv[3:]]
    first = subprocess.run(silent, capture_output=True, text=True, check=True, timeout=120)
    names = sorted(str(path.relative_to(drawings)) for path in drawings.rglob("*.png"))
    gone = [name for name in names if name.endswith(("/000.png", "/001.png"))]
    assert f"did not give {len(gone)} of the files: run again" in first.stdout
    assert {line["file"] for line in lines_of(tmp_path / "run")} == {*names} - {*gone}

    again = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert f"{len(gone)} files to do" in again.stdout
    assert sorted(line["file"] for line in lines_of(tmp_path / "run")) == names


@pytest.mark.parametrize("batch", [1, 8])
def test_texts_are_prompts_of_a_batch(
    python: Path, models: Path, tmp_path: Path, batch: int
) -> None:
    for number, prompt in enumerate(PROMPTS):
        (tmp_path / f"{number}.txt").write_text(prompt)
    (tmp_path / "long.txt").write_text("License " * 80)
    (tmp_path / "void.txt").write_text("")
    argv = infer(python, tmp_path / "run", models / "adapter", tmp_path, batch)
    subprocess.run([*argv, "--max-tokens", "12"], check=True, capture_output=True, timeout=120)
    *found, last, void = lines_of(tmp_path / "run")
    wanted = output_of(python, GENERATE, models / "text", models / "adapter", json.dumps(PROMPTS))
    assert [line["text"] for line in found] == json.loads(wanted)
    assert "can take 64 together" in last["error"]
    assert "the prompt is empty" in void["error"]


def test_the_notebook_serves_what_it_has_trained(
    python_of: Callable[[str], Path], tmp_path: Path
) -> None:
    printed = printed_by(
        SERVING / "serving.ipynb", python_of("pytorch"), tmp_path, {"requests": 32}
    )
    assert "tiny/best: image" in printed
    assert "1 at once" in printed
    assert "16 at once" in printed
    assert "200 of 200 files done" in printed
    accuracy = float(printed.rpartition("200 of 200 files done\n")[2].split()[0])
    trained = json.loads((tmp_path / "logs/serving/tiny/summary.json").read_text())
    assert accuracy == pytest.approx(trained["test_accuracy"], abs=0.001)
    assert accuracy > 0.5  # of eight classes


def test_the_session_is_asked_only_for_the_model_that_it_serves(
    server: ModelClient, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(server.path.parent))
    monkeypatch.setattr(model_client, "TOOL", "none")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelServerError, match="the server has ended"):
        model_client.opened(models / "text")
    load(server, models / "text")
    (server.path.parent / "tool-none.sock").hardlink_to(server.path)
    assert model_client.opened(models / "text").path.name == "tool-none.sock"
    # Trained on since, it is another model.
    weights = models / "text/model.safetensors"
    before = weights.stat()
    os.utime(weights)
    with pytest.raises(ModelServerError, match="the server has ended"):
        model_client.opened(models / "text")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert model_client.opened(models / "text").path.name == "tool-none.sock"
    with pytest.raises(ModelServerError, match="the server has ended"):
        model_client.opened(models / "image")
