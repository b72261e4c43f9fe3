"""Whether products of fp32 are TF32's: ten bits of precision, on a GPU from Ampere on."""


def is_used(precision: str, is_on_gpus: bool, is_allowed: bool) -> bool:
    """Say so of a training, by what its framework allows; older GPUs multiply in fp32 all the same.

    Sums, and what is kept, are fp32's.
    """
    return precision == "fp32" and is_on_gpus and is_allowed


def said(precision: str, is_tf32: bool) -> str:
    """Name a precision for a log: bf16, fp32, or fp32 (TF32 allowed)."""
    return f"{precision} (TF32 allowed)" if is_tf32 else precision
