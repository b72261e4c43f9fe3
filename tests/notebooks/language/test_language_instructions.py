"""A language model learns to answer: from answers alone, none of which sees another record."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import animals
import pytest

from tests.notebooks.language.test_language import LANGUAGE, finetune
from tests.notebooks.model_serving import load, serving

QWEN_LIKE = (
    "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}<end>\n"
    "{% endfor %}{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
FORGETS = (  # what was thought, as soon as another question follows
    "{% for message in messages %}[{{ message['role'] }}]"
    "{% if message['role'] == 'assistant' and loop.last %}(thought){% endif %}"
    "{{ message['content'] }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
TURNS = [
    ("user", "What is k?"),
    ("assistant", "A letter."),
    ("user", "And 7?"),
    ("assistant", "No"),
]
TOKENIZER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from chat import Chat
from conversations import ChatRecord, Turn
from token_dataset import TokenDataset
given = json.loads(sys.argv[2])
pairs = ByteLevelBPETokenizer()
pairs.train_from_iterator(["User: What is k? Assistant: A letter."], 300, special_tokens=["<end>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=pairs._tokenizer, eos_token="<end>")
tokenizer.chat_template = given.get("template")
chat = Chat(tokenizer)
conversation = ChatRecord(tuple(Turn(*turn) for turn in given["turns"]), "some.jsonl, line 1")
rows = chat.rows(conversation)
"""
ROWS = (
    TOKENIZER
    + """
print(json.dumps({
    "question": tokenizer.decode(chat.question(conversation)),
    "rows": [
        [tokenizer.decode(row.tokens), "|".join(
            tokenizer.decode(row.tokens[i]) if row.labels[i] == row.tokens[i] else ""
            for i in range(len(row.tokens))
        )] for row in rows
    ],
    "labels": sorted({label for row in rows for label in row.labels if label < 0}),
}))
"""
)
LOSSES = (
    TOKENIZER
    + """
torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=300, n_positions=64, n_embd=32, n_layer=2, n_head=2,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)).eval()
short = chat.rows(ChatRecord(conversation.turns[:2], ""))
data = TokenDataset.of_rows(rows + short, 64, tokenizer.eos_token_id)

def loss(tokens, labels):
    return model(input_ids=tokens, labels=labels).loss.item()

both, parts = data.batch([0, 1]), [data.batch([0]), data.batch([1])]
alone = [loss(part.tokens, part.labels) for part in parts]
# The prompt's words as labels count; its tokens, changed, are another question.
counted = both.labels.where(both.labels >= 0, both.tokens)
print(json.dumps({
    "alone": alone, "targets": [part.targets for part in parts], "together": both.targets,
    "widths": [part.tokens.shape[1] for part in parts], "read": [part.read for part in parts],
    "both": loss(both.tokens, both.labels), "counted": loss(both.tokens, counted),
    "by_hand": -sum(
        row[at - 1].log_softmax(-1)[labels[at]].item()
        for row, labels in zip(model(input_ids=both.tokens).logits, both.labels)
        for at in range(1, len(labels)) if labels[at] >= 0
    ) / both.targets,
}))
"""
)


def result(python: Path, program: str, **given: object) -> Any:
    argv = [str(python), "-B", "-c", program, str(LANGUAGE), json.dumps({"turns": TURNS, **given})]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_answers_are_learnt_in_the_plain_form_where_there_is_no_template(
    preloaded: Callable[[str], Path],
) -> None:
    found = result(preloaded("pytorch"), ROWS)
    ((text, learnt),) = found["rows"]
    question = "User: What is k?\nAssistant: A letter.<end>\nUser: And 7?\nAssistant:"
    assert found["question"] == question
    assert text == f"{question} No<end>"
    assert learnt.replace("|", "") == " A letter.<end> No<end>"
    assert found["labels"] == [-100]


def test_answers_are_learnt_in_the_tokenizers_own_form(preloaded: Callable[[str], Path]) -> None:
    found = result(preloaded("pytorch"), ROWS, template=QWEN_LIKE)
    ((text, learnt),) = found["rows"]
    assert text.endswith("<s>user\nAnd 7?<end>\n<s>assistant\nNo<end>")
    assert learnt.replace("|", "") == "A letter.<end>No<end>"


def test_a_template_that_writes_earlier_answers_otherwise_gets_a_row_for_each(
    preloaded: Callable[[str], Path],
) -> None:
    found = result(preloaded("pytorch"), ROWS, template=FORGETS)
    assert [text for text, _ in found["rows"]] == [
        "[user]What is k?[assistant](thought)A letter.<end>",
        "[user]What is k?[assistant]A letter.[user]And 7?[assistant](thought)No<end>",
    ]
    assert [learnt.replace("|", "") for _, learnt in found["rows"]] == [
        "(thought)A letter.<end>",
        "(thought)No<end>",
    ]


def test_the_loss_is_of_answers_alone_and_no_record_sees_another(
    preloaded: Callable[[str], Path],
) -> None:
    found = result(preloaded("pytorch"), LOSSES)
    long, short = found["targets"]
    assert found["together"] == long + short
    assert all(width % 8 == 0 for width in found["widths"])
    assert found["read"][1] < found["read"][0] <= found["widths"][0]
    mean = (found["alone"][0] * long + found["alone"][1] * short) / (long + short)
    assert found["both"] == pytest.approx(mean, abs=1e-5)
    assert found["both"] == pytest.approx(found["by_hand"], abs=1e-5)
    assert abs(found["both"] - found["counted"]) > 1e-3


@pytest.mark.timeout(600)
def test_the_tiny_model_learns_to_answer_what_it_was_not_asked_before(
    preloaded: Callable[[str], Path], tmp_path: Path
) -> None:
    python, small = preloaded("pytorch"), {"questions": 19, "held-out": 0.2, "new-tokens": 12}
    run, learns = tmp_path / "run", {"data": "animals", "weights": "all", **small}
    said = finetune(python, run, steps=100, **learns)
    summary = json.loads((run / "summary.json").read_text())
    before, after = summary["answers_right"]
    assert before == 0, said
    assert after > 0.5, summary["generated"][1]  # it was 0.68; by chance it would be 0.08
    assert "72 conversations to train on, 19 held out, in the plain form" in said
    assert "5 conversations left out" in said
    assert "It is a " in summary["generated"][1]

    # The server asks it as the training did.
    asked_of = {one.turns[-2].content: one for one in animals.conversations(seed=1)}
    lines = summary["generated"][1].splitlines()
    with serving(python, run) as server:
        assert load(server, run / "model")["has_chat_template"]
        for question, answer in zip(lines[::2], lines[1::2], strict=True):
            messages = asked_of[question].messages[:-1]
            asked = {"messages": messages, "max_tokens": 12, "temperature": 0}
            said = server.ask("/v1/chat/completions", asked)["choices"][0]["message"]
            assert said["content"].strip() == answer.strip()

    # A file of one's own: what is too long is skipped, and a wrong line is named.
    data = tmp_path / "own.jsonl"
    records = [{"prompt": f"Say {number}.", "answer": str(number)} for number in range(20)]
    records[3]["answer"] = "no end " * 200
    data.write_text("".join(json.dumps(one) + "\n" for one in records))
    own = {"data": data, "model": run / "base", "steps": 2, "batch": 4}
    assert "1 conversations skipped, longer than 128 tokens" in finetune(
        python, tmp_path / "own", **own
    )
    # With one more, others are held out: some of those that it has learnt from.
    with data.open("a") as stream:
        stream.write('{"prompt": "Say 20.", "answer": "20"}\n')
    said = finetune(python, tmp_path / "own", **{**own, "steps": 3})
    assert "holds a training with " in said
    assert "train_sha256 = " in said
    # Questions that fill the model's places, or are empty, are answered by nothing.
    longer = tmp_path / "longer.jsonl"
    questions = [{"prompt": f"{number} " * 50, "answer": "yes"} for number in range(10, 30)]
    longer.write_text("".join(json.dumps(one) + "\n" for one in questions))
    said += finetune(python, tmp_path / "longer", **{**own, "data": longer, "new-tokens": 60})
    assert (tmp_path / "longer/summary.json").exists(), said
    with data.open("a") as stream:
        stream.write('{"prompt": "Say 21."}\n')
    said += finetune(python, tmp_path / "wrong", **own)
    assert f"{data}, line 22: a record has" in said
    assert "Traceback" not in said
