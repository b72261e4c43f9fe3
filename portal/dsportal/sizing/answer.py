"""The arithmetic of sizing: how much storage a number of GPUs needs.

    needed MB/s   = GPUs x MB/s of one GPU
    storage nodes = needed MB/s / MB/s of one node = GPUs / GPUs that one node feeds

Numbers are exact, so that a quotient that is whole is not rounded up for a digit far behind the
point.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from dsportal.sizing import papers
from dsportal.sizing.papers import Rate
from dsportal.sizing.question import Question, SizingError

MB_PER_GIGABIT = 125


@dataclass(frozen=True)
class SizingAnswer:
    """Required storage; MB are 10^6 bytes. ``None``: the rate of one GPU is not known."""

    hosts: int
    gpus_per_node: Fraction
    """How many GPUs one storage node feeds."""
    nodes: Fraction
    """Storage nodes, not rounded."""
    mb_per_gpu: Fraction | None
    mb_per_second: Fraction | None
    """What all storage nodes give together."""
    mb_per_host: Fraction | None
    links_per_host: int | None
    mounts_per_link: int
    """As many as fill it."""
    storage_links: int | None
    """Of all storage nodes together; each has one."""
    gpus_fed: int | None
    """What the storage nodes that there are can feed."""
    hosts_fed: int | None
    """Whole hosts of these GPUs."""

    @property
    def whole_nodes(self) -> int:
        """Storage nodes, as they are bought."""
        return ceil(self.nodes)

    @property
    def mounts_per_host(self) -> int | None:
        """Mounts, so that each link of a host can be filled."""
        return None if self.links_per_host is None else self.links_per_host * self.mounts_per_link


def answer(asked: Question) -> SizingAnswer:
    """Work it out; raises `SizingError` where a figure is missing, and names the field for it."""
    rate = papers.rate(asked.card, asked.model, asked.images)
    gpu = _mb_per_gpu(asked, rate)
    fed = _gpus_per_node(asked, rate, gpu)
    nodes = asked.gpus / fed
    link = asked.link_gbps * MB_PER_GIGABIT
    host = None if gpu is None else gpu * min(asked.gpus, asked.gpus_per_host)
    needed = None if gpu is None else gpu * asked.gpus
    storage_link = storage_link_gbps(asked) * MB_PER_GIGABIT
    gpus_fed = None if asked.storage_nodes is None else floor(asked.storage_nodes * fed)
    return SizingAnswer(
        hosts=ceil(Fraction(asked.gpus, asked.gpus_per_host)),
        gpus_per_node=fed,
        nodes=nodes,
        mb_per_gpu=gpu,
        mb_per_second=needed,
        mb_per_host=host,
        links_per_host=None if host is None else ceil(host / link),
        mounts_per_link=ceil(link / mount_mb_per_second(asked)),
        storage_links=None if needed is None else max(ceil(nodes), ceil(needed / storage_link)),
        gpus_fed=gpus_fed,
        hosts_fed=None if gpus_fed is None else gpus_fed // asked.gpus_per_host,
    )


def mount_mb_per_second(asked: Question) -> Fraction:
    """Say what one mount reads."""
    return asked.mount_mb_per_second or papers.MOUNT_MB_PER_SECOND


def storage_link_gbps(asked: Question) -> Fraction:
    """Say how fast a link of a storage node is."""
    return asked.storage_link_gbps or asked.link_gbps


def mb_per_image(asked: Question) -> Fraction:
    """Say how large an image is."""
    return asked.mb_per_image or papers.IMAGE_MB[asked.images]


def _mb_per_gpu(asked: Question, rate: Rate | None) -> Fraction | None:
    if asked.images_per_second is not None:
        return asked.images_per_second * mb_per_image(asked)
    if rate is None:
        raise SizingError(
            {
                "images_per_second": "The papers have no rate for this work on this card "
                f"({asked.card}, {asked.model}, {asked.images} images): give it as you measured "
                "it on one GPU."
            }
        )
    return None if rate.mb_per_second is None else Fraction(rate.mb_per_second)


def _gpus_per_node(asked: Question, rate: Rate | None, gpu: Fraction | None) -> Fraction:
    is_papers = asked.images_per_second is None and asked.node_mb_per_second is None
    if is_papers and rate is not None and asked.storage in rate.gpus_per_node:
        return Fraction(rate.gpus_per_node[asked.storage])
    node = asked.node_mb_per_second or papers.node_mb_per_second(
        asked.storage, asked.model, asked.images
    )
    if node is None or gpu is None:
        figures = {"images_per_second": gpu, "node_mb_per_second": node}
        raise SizingError(
            {
                name: f"The papers have no figure for {asked.card} GPUs on storage "
                f"{asked.storage!r}: give it as you measured it."
                for name, value in figures.items()
                if value is None
            }
        )
    return node / gpu
