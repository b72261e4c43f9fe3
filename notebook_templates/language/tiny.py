"""A language model that is made in half a minute, in the place of a real one: to try things out.

GPT-2 (Radford et al. 2019) with 0.7 million weights, trained on the sources of Python's library.
What is made is a folder as a real model's: weights, configuration and tokenizer.
"""

import tempfile
from pathlib import Path

import torch
from texts import texts
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

WORDS, LAYERS, WIDTH, LENGTH = 1024, 3, 128, 128
END = "<end>"  # of a text
STEPS, BATCH, RATE, RISING = 150, 8, 2e-3, 20


def make(folder: Path, seed: int) -> None:
    """Train it, and put it into a folder, which is there whole or not at all."""
    torch.manual_seed(seed)
    sources = texts("python")
    bytes_to_words = ByteLevelBPETokenizer()
    bytes_to_words.train_from_iterator(sources, WORDS, special_tokens=[END], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_to_words._tokenizer, eos_token=END, pad_token=END
    )
    words = torch.tensor(
        [number for one in bytes_to_words.encode_batch(sources) for number in one.ids]
    )
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS, n_head=4,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    chance = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        begins = torch.randint(len(words) - LENGTH, (BATCH,), generator=chance)
        batch = torch.stack([words[begin : begin + LENGTH] for begin in begins])
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / RISING)
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as building:
        made = Path(building) / folder.name
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        made.rename(folder)
