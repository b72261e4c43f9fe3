"""Models that are made in a second, to be served in tests: they have learned nothing."""

import json
import subprocess
from pathlib import Path

from tests.instance import ROOT

CLASSES = ["<b>cat</b>", "dog", "hare"]
"""What a page would show as bold, if it did not escape it."""
_TEXT = """
import sys, torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from tokenizers import ByteLevelBPETokenizer
torch.manual_seed(3)
words = ByteLevelBPETokenizer()
words.train_from_iterator(["This License is free"] * 9, 300, special_tokens=["<end>"])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words._tokenizer, eos_token="<end>")
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=300, n_positions=int(sys.argv[2]), n_embd=32, n_layer=2, n_head=2,
    initializer_range=0.5, bos_token_id=0, eos_token_id=0,
))
if sys.argv[3] == "endless":
    model.transformer.wte.weight.data[0] = 0  # which makes the end never the likeliest
model.save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""
_IMAGE = """
import json, sys, torch, transformers
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import classifier
torch.manual_seed(3)
names = json.loads(sys.argv[3])
folder = Path(sys.argv[1])
classifier.make_tiny(folder, 3)
classifier.write(folder, classifier.read(folder, names))
"""
_ADAPTER = """
import sys, peft, torch
from transformers import AutoModelForCausalLM
torch.manual_seed(4)
base = AutoModelForCausalLM.from_pretrained(sys.argv[2])
lora = peft.LoraConfig(
    task_type="CAUSAL_LM", target_modules="all-linear", fan_in_fan_out=True, init_lora_weights=False
)
peft.get_peft_model(base, lora).save_pretrained(sys.argv[1])
"""


_MAKE = """
import json, sys
for code, *arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    exec(code, {})
"""
Recipe = list[str]
"""A program, and its arguments."""


def text(folder: Path, positions: int = 64, *, is_endless: bool = False) -> Recipe:
    """A language model that can take so many tokens; an endless one goes on until then."""
    return [_TEXT, str(folder), str(positions), "endless" if is_endless else "ends"]


def adapter(folder: Path, base: Path) -> Recipe:
    """A LoRA adapter of a language model that is there or made before."""
    return [_ADAPTER, str(folder), str(base)]


def image(folder: Path) -> Recipe:
    """A network that puts images into `CLASSES`."""
    vision = ROOT / "notebook_templates" / "vision"
    return [_IMAGE, str(folder), str(vision), json.dumps(CLASSES)]


def make(python: Path, *recipes: Recipe) -> None:
    """Make them, one after the other, in one process: its imports take longer than all the rest."""
    for _, folder, *_ in recipes:
        Path(folder).parent.mkdir(parents=True, exist_ok=True)
    argv = [str(python), "-B", "-c", _MAKE, json.dumps(recipes)]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
