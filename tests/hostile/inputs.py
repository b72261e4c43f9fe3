"""What anybody could send or be called, for hypothesis: one description for all property tests."""

from typing import Any

from hypothesis import strategies as st

from jupyterhub_gpu_slurm.options.request import KEYS

LURES = (
    "1\n#SBATCH --gres=gpu:4",
    "sxm2\r#SBATCH --uid=0",
    "sxm2 --uid=root",
    "$(id)",
    "`id`",
    "'; id; '",
    "END_OF_SESSION_INPUT\nid\n",
    "--wrap=id",
    "a\x00b",
    "a\u2028#SBATCH --uid=0",
    "%j",
    "\ud800",
)
"""Texts that would mean something in a job script, were they to arrive there."""

TEXTS = st.text() | st.sampled_from(LURES) | st.from_regex(r"[a-z0-9_.@-]{1,40}", fullmatch=True)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OPTIONS: st.SearchStrategy[Any] = JSON | st.dictionaries(
    st.sampled_from(KEYS),
    JSON | st.sampled_from((0, 1, 4, "2", 0.5, "8", "sxm2", "shareq", "v100", "1g.10gb", "")),
    max_size=len(KEYS),
)
"""The body of a request to start a server: any JSON, and such that comes close."""

FIELDS = st.dictionaries(
    st.sampled_from((*KEYS, "_xsrf")) | TEXTS, st.lists(TEXTS, max_size=2), max_size=4
)
"""The fields of a form or of a link."""

ENVIRONMENTS = st.dictionaries(TEXTS, TEXTS, max_size=4)
