"""What the NAS says of itself, asked of a stand-in over TLS."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from filesystem.nas_sampler import KEYS, NasSampler, asked, line
from filesystem.onefs import Onefs, OnefsError
from measurement import machine, result
from measurement.result import Result
from reports import usage
from tests.onefs import STATISTICS, StandIn
from tests.waiting import until


def test_statistics_come_by_key_and_unknown_ones_are_left_out(nas: StandIn) -> None:
    said = Onefs(nas.url).statistics(["ifs.bytes.out.rate", "no.such.key"])
    assert said == {"ifs.bytes.out.rate": 2_680_000_000.0}


def test_a_sample_has_what_the_papers_show(nas: StandIn) -> None:
    found = line(Onefs(nas.url).statistics(list(KEYS.values())))
    assert found["read_mb_per_second"] == 2680.0
    assert found["disk_reads_per_second"] == 20_000.0
    assert found["disk_read_kib"] == 64.0
    assert set(line({}).values()) == {None}, "not known is not 0"


def test_a_certificate_that_nobody_knows_is_refused(
    nas: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(OnefsError, match="certificate"):
        Onefs(nas.url).usage()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.chmod(0o640), "can be read by others"),
        (lambda file: file.write_text("machine other login a password b\n"), "has no line"),
        (lambda file: file.unlink(), "no user and password for localhost"),
        (lambda file: file.write_text("machine localhost login a password b\n"), "401"),
    ],
)
def test_a_wrong_login_is_told(
    nas: StandIn, tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(tmp_path / "netrc")
    with pytest.raises(OnefsError, match=said):
        Onefs(nas.url).usage()


@pytest.mark.parametrize("url", ["http://nas:8080", "nas:8080", "https://", "https://nas/platform"])
def test_an_address_without_tls_or_with_a_path_is_refused(url: str) -> None:
    with pytest.raises(OnefsError, match="it must be like https://"):
        Onefs(url)


def test_a_job_that_fails_is_not_waited_for(nas: StandIn) -> None:
    nas.states = ["running", "failed"]
    onefs = Onefs(nas.url)
    job = onefs.start("SmartPoolsTree", ["/ifs/data"])
    with pytest.raises(OnefsError, match="job 1 is failed"):
        onefs.wait_for(job, 60, sleep=lambda _: None)


def test_a_job_is_not_waited_for_without_end(nas: StandIn) -> None:
    nas.states = ["running"]
    onefs = Onefs(nas.url)
    job = onefs.start("SmartPoolsTree", ["/ifs/data"])
    with pytest.raises(OnefsError, match="still running after -1 s"):
        onefs.wait_for(job, -1, sleep=lambda _: None)


def test_samples_are_kept_while_something_is_measured(nas: StandIn, tmp_path: Path) -> None:
    with NasSampler(asked(nas.url), tmp_path, every=0.01) as sampler:
        pass
    first = sampler.samples()
    assert first, "the last one is taken at the end"
    assert first[-1]["read_mb_per_second"] == 2680.0
    with NasSampler(asked(""), tmp_path) as none:
        pass
    assert none.samples() == first


def test_a_nas_that_does_not_answer_is_told_once_and_stops_nothing(
    nas: StandIn, tmp_path: Path
) -> None:
    nas.is_broken = True
    sampler = NasSampler(asked(nas.url), tmp_path, every=0.01)
    # Not capsys, of which a line is lost that comes while it is read.
    told = io.StringIO()
    with redirect_stderr(told), sampler:
        until(lambda: told.getvalue(), seconds=60, every=0.01, what="it is told")
        nas.is_broken = False
        until(sampler.samples, seconds=60, every=0.01, what="the NAS answers")
    assert told.getvalue().count("statistics are missing") == 1


def test_the_nas_is_drawn_below_the_nodes_on_their_time_axis() -> None:
    unknown = {**line({}), "time": 115.0}
    known = {**line(STATISTICS), "time": 110.0}
    drawn = usage.figure([(100.0, 5.0), (120.0, 5.0)], {}, "MB/s", [known, unknown])
    last = drawn.axes[-3:]
    labels = ["NAS, MB/s", "NAS's disks, 1/s", "a disk's read, KiB"]
    assert [axis.get_ylabel() for axis in last] == labels
    times = np.asarray(last[0].lines[0].get_xdata()).tolist()
    assert times == [10.0, 15.0], "seconds since the measurement began"
    assert len(usage.figure([(100.0, 5.0)], {}).axes) == len(drawn.axes) - 3


def test_a_summary_with_the_nas_is_as_the_schema_says(tmp_path: Path) -> None:
    run = Result(tmp_path, "training", {"batch": 64}, parts=1)
    run.part("run 1", lambda: {"images_per_second": 812.0})
    nas = [{**line({}), "time": 115.0}]
    summary = run.finish([machine.host()], machine.versions(), {"mean": 812.0}, None, nas)
    schema = json.loads((Path(result.__file__).parents[1] / "schema.json").read_text())
    jsonschema.validate(summary, schema)
    assert summary["nas"] == nas
