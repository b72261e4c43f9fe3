"""What the model server writes can be read while it is written, with OpenAI's own client."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from model_client import ModelClient

from tests.instance import ROOT
from tests.notebooks.model_serving import load, serving
from tests.training import tiny_models
from tests.waiting import until

POSITIONS = 4096
PROMPTS = ["This License", "is", "free is free This is a longer text than the others"]
TURNS = [("system", "This is"), ("user", "License"), ("assistant", "free"), ("user", "is?")]
OWN = (  # the end of its turns becomes a token that the tiny model writes
    "{% for one in messages %}[{{ one.role }}] {{ one.content }}END{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
# What the fine-tuning asks, and what the model then writes up to the end of its turn.
ASK = """
import json, sys
sys.path[:0] = [sys.argv[1]]
import torch
from tokenizers.processors import TemplateProcessing
from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer
from chat import Chat
from conversations import ChatRecord, Turn
folder, given = sys.argv[2], json.loads(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(folder)
turns = tuple(Turn(*one) for one in (*given["turns"], ("assistant", "none")))

def with_end(token):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = AddedToken(tokenizer.convert_ids_to_tokens(token), special=True)
    tokenizer.add_special_tokens({"additional_special_tokens": [end]})
    tokenizer.chat_template = given["template"].replace("END", end.content)
    return tokenizer

def ends_its_turn(tokenizer):
    _, cut = written(tokenizer)
    return 4 < len(cut) < 24

def written(tokenizer):
    chat = Chat(tokenizer)
    question = chat.question(ChatRecord(turns, ""))
    tokens = torch.tensor([question])
    row = model.generate(tokens, max_new_tokens=24, do_sample=False, pad_token_id=0)[0]
    tokens = row[len(question):].tolist()
    ends = [place for place, token in enumerate(tokens) if token in chat.ends()]
    return question, tokens[: ends[0]] if ends else tokens

def asked(case):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if case["begins"]:
        tokenizer.add_special_tokens({"bos_token": "free"})
        tokenizer._tokenizer.post_processor = TemplateProcessing(
            single="free $A", special_tokens=[("free", tokenizer.bos_token_id)]
        )
    if case["has_own"]:
        tokenizer = next(filter(ends_its_turn, map(with_end, range(100, 250))))
    question, cut = written(tokenizer)
    if not case["is_taught"]:
        tokenizer.chat_template = None
    tokenizer.save_pretrained(f"{folder}/{case['name']}")
    return {
        "asked": tokenizer.decode(question), "count": len(question), "tokens": len(cut),
        "text": tokenizer.decode(cut, skip_special_tokens=True),
    }

print(json.dumps({case["name"]: asked(case) for case in given["cases"]}))
"""
CASES = [
    {"name": "plain", "has_own": False, "begins": False, "is_taught": False},
    {"name": "with-a-beginning", "has_own": False, "begins": True, "is_taught": False},
    {"name": "taught", "has_own": False, "begins": True, "is_taught": True},
    {"name": "own-template", "has_own": True, "begins": False, "is_taught": True},
]


@pytest.fixture(scope="module")
def python(preloaded: Callable[[str], Path]) -> Path:
    return preloaded("pytorch")


@pytest.fixture(scope="module")
def models(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a language model, which can write for a while."""
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make(python, tiny_models.text(folder / "text", POSITIONS, is_endless=True))
    return folder


@pytest.fixture(scope="module")
def server(python: Path, models: Path) -> Iterator[ModelClient]:
    with serving(python, models) as client:
        yield client


@pytest.fixture(scope="module")
def http(server: ModelClient) -> Iterator[httpx.Client]:
    way = httpx.HTTPTransport(uds=str(server.path))
    with httpx.Client(transport=way, base_url="http://localhost", timeout=120) as http:
        yield http


@pytest.fixture
def client(server: ModelClient, models: Path, http: httpx.Client) -> openai.OpenAI:
    """OpenAI's client at the server, which has loaded the language model."""
    load(server, models / "text")
    return client_at(http)


def client_at(http: httpx.Client) -> openai.OpenAI:
    return openai.OpenAI(
        base_url="http://localhost/v1", api_key="none", http_client=http, max_retries=0
    )


def name_of(client: openai.OpenAI) -> str:
    (model,) = client.models.list()
    return model.id


@pytest.mark.parametrize("stop", [None, ["ee"]])
def test_the_parts_of_texts_are_the_texts(client: openai.OpenAI, stop: list[str] | None) -> None:
    asked: dict[str, Any] = {"max_tokens": 30, "temperature": 0, "prompt": PROMPTS, "stop": stop}
    model = name_of(client)
    whole = client.completions.create(model=model, **asked)
    parts: list[list[str]] = [[] for _ in PROMPTS]
    reasons: list[str | None] = [None for _ in PROMPTS]
    usage = None
    events = client.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, **asked
    )
    for one in events:
        usage = one.usage or usage
        for choice in one.choices:
            assert reasons[choice.index] is None
            parts[choice.index].append(choice.text)
            reasons[choice.index] = choice.finish_reason
    assert ["".join(one) for one in parts] == [choice.text for choice in whole.choices]
    assert reasons == [choice.finish_reason for choice in whole.choices]
    assert usage == whole.usage
    assert len(set(map(tuple, parts))) == len(PROMPTS)
    if stop is None:
        assert all(len(one) > 10 for one in parts), parts


def test_the_parts_of_an_answer_are_the_answer(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {
        "model": name_of(client),
        "max_completion_tokens": 30,
        "temperature": 1.0,
        "seed": 5,
        "messages": [{"role": "user", "content": "This is free"}],
    }
    whole = client.chat.completions.create(**asked)
    parts = list(client.chat.completions.create(stream=True, **asked))
    deltas = [one.choices[0].delta for one in parts]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    assert parts[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    assert len(parts) > 10


def test_a_stream_ends_as_openais_does(http: httpx.Client, client: openai.OpenAI) -> None:
    asked = {"prompt": "is", "max_tokens": 3, "stream": True}
    answer = http.post("/v1/completions", json=asked)
    assert answer.headers["Content-Type"] == "text/event-stream; charset=UTF-8"
    *events, done, rest = answer.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    assert {json.loads(one.removeprefix("data: "))["object"] for one in events} == {
        "text_completion"
    }


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_client_that_leaves_frees_the_server(
    server: ModelClient, http: httpx.Client, models: Path, is_streamed: bool
) -> None:
    load(server, models / "text")
    before = server.state()
    asked = {"prompt": "is", "max_tokens": 4000, "temperature": 0, "stream": is_streamed}
    leave(http, asked)
    until(
        lambda: server.state()["requests"] > before["requests"],
        seconds=120,
        every=0.05,
        what="the text is not written any more",
    )
    assert server.state()["tokens"] - before["tokens"] < 4000
    if is_streamed:  # and nothing else was the reason for it
        text = server.ask("/v1/completions", {**asked, "stream": False})
        assert text["usage"]["completion_tokens"] == 4000


def leave(http: httpx.Client, asked: dict[str, Any]) -> None:
    """Ask for a text, and leave before it is there."""
    if not asked["stream"]:
        with pytest.raises(httpx.ReadTimeout):
            http.post("/v1/completions", json=asked, timeout=0.5)
        return
    with http.stream("POST", "/v1/completions", json=asked) as answer:
        next(answer.iter_lines())


def test_what_cannot_be_streamed_is_refused_before_it_begins(client: openai.OpenAI) -> None:
    model = name_of(client)
    with pytest.raises(openai.BadRequestError, match="this model can take 4096 together"):
        client.completions.create(model=model, prompt="is " * 20, max_tokens=4096, stream=True)
    with pytest.raises(openai.NotFoundError, match="'gpt' is not loaded") as refused:
        client.completions.create(model="gpt", prompt="is", stream=True)
    assert refused.value.code == "model_not_found"


@pytest.fixture(scope="module")
def asked(python: Path, models: Path) -> Any:
    """What the fine-tuning asks in each of the cases; its tokenizers are in the model's folder."""
    language = ROOT / "notebook_templates" / "language"
    given = json.dumps({"turns": TURNS, "cases": CASES, "template": OWN})
    argv = [str(python), "-B", "-c", ASK, str(language), str(models / "text"), given]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_answer_is_asked_for_as_the_fine_tuning_does(
    server: ModelClient, http: httpx.Client, models: Path, tmp_path: Path, asked: Any, case: Any
) -> None:
    wanted = asked[case["name"]]
    if case["has_own"]:
        assert 4 < wanted["tokens"] < 24  # it ends with the end of its turn
    else:
        assert wanted["asked"].startswith("freeSystem: " if case["begins"] else "System: ")
    folder = shutil.copytree(models / "text", tmp_path / "model")
    shutil.copytree(models / "text" / case["name"], folder, dirs_exist_ok=True)
    loaded = load(server, folder)
    assert loaded["has_chat_template"] is case["is_taught"]
    messages: Any = [{"role": role, "content": content} for role, content in TURNS]
    answer = client_at(http).chat.completions.create(
        model=loaded["model"]["name"], messages=messages, temperature=0, max_tokens=24
    )
    assert answer.choices[0].message.content == wanted["text"] != ""
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == wanted["count"]
    assert answer.usage.completion_tokens == wanted["tokens"]
