"""Which images are whose: each seen once, and the same ones again after a break."""

from sampler import Sampler, mount_of

SAMPLERS = [Sampler(103, 4, rank, 3, seed=1) for rank in range(3)]


def test_a_process_reads_from_rank_modulo_mounts() -> None:
    mounts = ["/a", "/b", "/c"]
    assert [mount_of(rank, mounts) for rank in range(4)] == ["/a", "/b", "/c", "/a"]
    assert mount_of(3, []) == ""


def test_in_an_epoch_each_image_is_seen_once_by_one_process() -> None:
    for epoch in (0, 1):
        seen = [at for sampler in SAMPLERS for step in sampler.epoch(epoch) for at in step]
        assert len(seen) == len(set(seen)) == 103 // 12 * 12
        assert {number for number, _ in seen} == {epoch}


def test_each_epoch_has_an_order_of_its_own() -> None:
    first, second = ([index for step in SAMPLERS[0].epoch(n) for _, index in step] for n in (0, 1))
    assert first != second


def test_a_resumed_process_goes_on_with_the_images_that_came_next() -> None:
    assert list(SAMPLERS[1].epoch(1, first_step=5)) == list(SAMPLERS[1].epoch(1))[5:]
