"""What is measured of the network, and what comes out, without one."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

import network
from links import iperf
from links.server import address_in, free_port
from measurement.choices import SettingError
from network import links, nodes_of, pairs, rates_of
from reports import network as network_report

# Written by iperf3 3.12 for one second with two connections.
REPORT = Path(__file__).parents[1] / "data" / "link_of_iperf_3.12.json"
DEFAULTS = {
    "pairs": "all",
    "streams": "1,4",
    "seconds": 10,
    "omit": 2,
    "repeats": 3,
    "network": "",
    "nodes": "",
}


def settings(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**{**DEFAULTS, **more})


def test_the_rate_is_what_arrived() -> None:
    found = iperf.figures(REPORT.read_text())
    assert found["gbit_per_second"] == pytest.approx(4.9083996903298)
    # 614,203,392 bytes in 1.001065 s.
    assert found["mb_per_second"] == pytest.approx(613.549961, rel=1e-6)
    assert found["retransmits"] == 15


def test_connections_at_the_same_time_add_up() -> None:
    one = iperf.figures(REPORT.read_text())
    assert iperf.together([one]) == one
    found = iperf.together([one, {**one, "retransmits": 1}])
    assert found["gbit_per_second"] == pytest.approx(2 * 4.9083996903298)
    assert found["retransmits"] == 16


def test_iperfs_error_is_told() -> None:
    report = json.dumps({"start": {}, "end": {}, "error": "test authorization failed"})
    with pytest.raises(iperf.IperfError, match="iperf3: test authorization failed"):
        iperf.figures(report)
    with pytest.raises(iperf.IperfError, match="no report"):
        iperf.figures("")


def test_the_password_is_on_no_command_line(tmp_path: Path) -> None:
    keys = iperf.new_keys(tmp_path / "keys")
    words = iperf.client(keys, "10.1.0.2", 5201, 10, 2) + iperf.server(keys.folder, "::1", 1)
    assert not any(keys.password in word for word in words)
    assert keys.password not in Path(keys.users).read_text()
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert keys.password != iperf.new_keys(tmp_path / "keys").password


def test_all_pairs_in_both_directions_or_a_ring() -> None:
    assert pairs(["a", "b"], "all") == [("a", "b"), ("b", "a")]
    assert len(pairs(list("abcd"), "all")) == 12
    assert pairs(list("abc"), "ring") == [("a", "b"), ("b", "c"), ("c", "a")]


def test_each_link_is_measured_with_each_number_of_connections() -> None:
    todo = links(settings(), ["a", "b"])
    assert len(todo) == len({link.name for link in todo}) == 2 * 2 * 3
    assert todo[0].name == "a to b, 1 streams, run 1"


@pytest.mark.parametrize(
    "wrong",
    [{"streams": "0"}, {"streams": "1,x"}, {"streams": "200"}, {"network": "ib0"}, {"seconds": 0}],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        links(settings(**wrong), ["a", "b"])


def test_nodes_are_those_of_the_job() -> None:
    assert nodes_of("", ["a", "b"]) == ["a", "b"]
    assert nodes_of("c,a", ["a", "b", "c"]) == ["c", "a"]
    with pytest.raises(SettingError, match="nodes names z, but the job has a, b"):
        nodes_of("a,z", ["a", "b"])
    for alone in ("", "a,a", "a"):
        with pytest.raises(SettingError, match=r"needs two nodes.*submit it to Slurm"):
            nodes_of(alone, ["a"])


def test_without_a_job_there_are_no_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    assert network.nodes_of_job() == []


def test_the_address_is_the_one_in_the_chosen_network() -> None:
    # What `ip -json address` says, without what is not read.
    interfaces: list[dict[str, Any]] = [
        {"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}, {"local": "::1"}]},
        {"ifname": "eth0", "addr_info": [{"local": "192.0.2.5"}]},
        {"ifname": "ib0", "addr_info": [{"local": "10.1.0.5"}, {"local": "fe80::1"}]},
    ]
    assert address_in("10.1.0.0/16", interfaces) == "10.1.0.5"
    assert address_in("fe80::/64", interfaces) == "fe80::1"
    assert address_in("10.2.0.0/16", interfaces) is None


def test_a_port_is_free() -> None:
    assert 1024 <= free_port("127.0.0.1") <= 65535


def rows(*rates: float) -> list[dict[str, Any]]:
    one = {"from": "a", "to": "b", "streams": 4, "retransmits": 2}
    return [{**one, "gbit_per_second": rate} for rate in rates]


def test_the_report_has_each_link() -> None:
    back = [{**rows(30.0)[0], "from": "b", "to": "a"}, {**rows(1.0)[0], "streams": 1}]
    summary = {
        "figures": {"rates": rates_of([*rows(9.0, 10.0, 11.0), *back])},
        "versions": {"iperf3": "iperf 3.12"},
        "date": "2026-11-22",
    }
    said = network_report.markdown(summary)
    assert "| a | b | 4 | 10.00 | 9.00 to 11.00 | 1,250 | 2 |" in said
    assert network_report.most_streams(summary) == {("a", "b"): 10.0, ("b", "a"): 30.0}
    assert network_report.figure(summary).startswith(b"\x89PNG")
