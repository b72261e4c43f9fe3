"""A speed at fp32 is not one at TF32: a training says which it was."""

import pytest
import tf32

from tests.instance import ROOT

PROGRAMS = {
    "distributed/train_resnet.py", "distributed/train_resnet_tensorflow.py",
    "jax/train_keras.py", "jax/train_sharded.py", "language/finetune.py", "vision/train_vit.py",
}  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "is_on_gpus", "is_allowed", "said"),
    [
        ("fp32", True, True, "fp32 (TF32 allowed)"),
        ("fp32", True, False, "fp32"),
        ("fp32", False, True, "fp32"),
        ("bf16", True, True, "bf16"),
    ],
)
def test_tf32_is_named_where_a_gpu_may_multiply_in_it(
    precision: str, is_on_gpus: bool, is_allowed: bool, said: str
) -> None:
    is_tf32 = tf32.is_used(precision, is_on_gpus, is_allowed)
    assert tf32.said(precision, is_tf32) == said


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_with_a_precision_says_it_and_keeps_it(program: str) -> None:
    text = (ROOT / "notebook_templates" / program).read_text()
    assert "tf32.said(s.precision, is_tf32)" in text
    assert '"tf32": is_tf32' in text
