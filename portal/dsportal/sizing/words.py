"""Text of the answer, the same for the command and the page: what, how much, and from what."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from dsportal.sizing.answer import (
    SizingAnswer,
    mb_per_image,
    mount_mb_per_second,
    storage_link_gbps,
)
from dsportal.sizing.question import FIELDS, Choice, Question

ADVICE = (
    "If there are several storage nodes, point each mount at a different one. Process n of a "
    "training reads from mount n modulo the number of mounts; if there are more storage nodes than "
    "mounts, let hosts start at different ones."
)
LEFT_OUT = (
    "Not included, as in the papers: the failure of a storage node or of a link, other load "
    "on the storage (other users, writing, checkpoints, backups), and growth. Caches are assumed "
    "not to help: each image is read from the storage in each epoch."
)

PAPERS = (
    "Dell EMC Ready Solutions for AI: Deep Learning with NVIDIA, architecture guide v1.0",
    "Dell EMC Isilon and NVIDIA DGX-1 Servers for Deep Learning, white paper, November 2018",
    "Accelerating AI and Deep Learning with Dell EMC Isilon and NVIDIA GPUs, blog post",
    "Deep Learning on V100, blog post of Dell EMC's HPC Innovation Lab, September 2017",
    "White paper on Isilon storage with servers of ten V100-PCIe",
    "A later document of this series, with A100 GPUs",
)
"""Dell EMC's, of 2017 to 2020: where the figures come from. docs/explanation/measuring.md."""


@dataclass(frozen=True)
class SizingRow:
    """A figure of the answer, with its derivation."""

    what: str
    value: str
    how: str


def title(asked: Question) -> str:
    """Say what is asked."""
    if asked.card == "other":
        cards = f"{plural(asked.gpus, 'GPU')} of another card"
    else:
        cards = plural(asked.gpus, f"{asked.card} GPU")
    model = meaning("model", asked.model)
    storage = "other storage" if asked.storage == "other" else f"{asked.storage} nodes"
    return f"{cards}: {model}, {asked.images} images, from {storage}"


def rows(asked: Question, found: SizingAnswer) -> list[SizingRow]:
    """Say each figure."""
    return [_gpu(asked, found), *_storage(asked, found), *_host(asked, found)]


def meaning(name: str, word: str) -> str:
    """Say what a word of a field means."""
    field = FIELDS[name]
    return field.choices[word] if isinstance(field, Choice) else word


def tenths(number: Fraction) -> str:
    """Write a number with one digit, cut and not rounded: 80/27 are the papers' 2.9."""
    cut = floor(number * 10)
    return f"{cut // 10:,}.{cut % 10}"


def rounded(number: Fraction) -> str:
    """Write a number with at most one digit behind the point."""
    return f"{float(number):,.1f}".removesuffix(".0")


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _gpu(asked: Question, found: SizingAnswer) -> SizingRow:
    what = "One GPU reads"
    if found.mb_per_gpu is None:
        return SizingRow(what, "not known", "the papers' figure is in GPUs of a storage node")
    value = f"{rounded(found.mb_per_gpu)} MB/s"
    if asked.images_per_second is None:
        return SizingRow(what, value, "the papers' rate")
    images = f"{float(asked.images_per_second):,g} images/s"
    return SizingRow(what, value, f"{images} x {float(mb_per_image(asked)):g} MB")


def _storage(asked: Question, found: SizingAnswer) -> list[SizingRow]:
    fed = f"{floor(found.gpus_per_node):,} GPUs a node"
    if found.gpus_per_node < 1:
        fed = f"{float(found.gpus_per_node):.2f} GPUs a node"
    source = "measured" if asked.node_mb_per_second is not None else "the papers'"
    nodes = SizingRow(
        "Storage nodes", f"{found.whole_nodes:,}", f"{tenths(found.nodes)}: {fed}, {source}"
    )
    fed_rows = _fed(asked, found)
    if found.mb_per_gpu is None or found.mb_per_second is None:
        return [nodes, *fed_rows]
    how = f"{plural(asked.gpus, 'GPU')} x {rounded(found.mb_per_gpu)} MB/s"
    needed = SizingRow("The storage must give", f"{rounded(found.mb_per_second)} MB/s", how)
    links = SizingRow(
        "Links of the storage",
        f"{found.storage_links:,}",
        f"of {float(storage_link_gbps(asked)):g} Gb/s, at least one a node",
    )
    return [needed, nodes, *fed_rows, links]


def _fed(asked: Question, found: SizingAnswer) -> list[SizingRow]:
    """Say what the storage nodes that there are can feed."""
    if asked.storage_nodes is None or found.gpus_fed is None or found.hosts_fed is None:
        return []
    there = plural(asked.storage_nodes, "node")
    hosts = f"{plural(found.hosts_fed, 'host')} with {plural(asked.gpus_per_host, 'GPU')} each"
    how = f"{there} x {tenths(found.gpus_per_node)} GPUs; {hosts}"
    if found.mb_per_gpu is not None:
        node = rounded(found.gpus_per_node * found.mb_per_gpu)
        how = f"{there} x {node} MB/s / {rounded(found.mb_per_gpu)} MB/s; {hosts}"
    return [SizingRow("Your storage nodes can feed", plural(found.gpus_fed, "GPU"), how)]


def _host(asked: Question, found: SizingAnswer) -> list[SizingRow]:
    mount = f"{rounded(mount_mb_per_second(asked))} MB/s"
    filling = f"{plural(found.mounts_per_link, 'mount')} of {mount}"
    how = f"{filling} fill one of {float(asked.link_gbps):g} Gb/s"
    hosts = SizingRow(
        "Hosts", f"{found.hosts:,}", f"with {plural(asked.gpus_per_host, 'GPU')} each"
    )
    if found.mb_per_host is None:
        return [hosts, SizingRow("Mounts for each link of a host", f"{found.mounts_per_link}", how)]
    return [
        hosts,
        SizingRow("One host reads", f"{rounded(found.mb_per_host)} MB/s", "all its GPUs together"),
        SizingRow(
            "Links of a host", f"{found.links_per_host}", f"of {float(asked.link_gbps):g} Gb/s"
        ),
        SizingRow("Mounts of a host", f"{found.mounts_per_host}", how),
    ]
