"""What is measured of the network, and what comes out, without one."""

import argparse
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import network
from links import iperf, nas, sender
from links.nas import NasAddress, addresses_of
from links.server import address_in, free_port
from measurement import steps
from measurement.choices import SettingError
from measurement.site_program import SiteProgramError
from measurement.steps import StepError
from network import Link, links, nodes_of, pairs, rates_of
from reports import drawing
from reports import network as network_report

# Written by iperf3 3.12 for one second with two connections.
REPORT = Path(__file__).parents[3] / "data" / "link_of_iperf_3.12.json"
DEFAULTS = {
    "pairs": "all",
    "streams": "1,4",
    "seconds": 10,
    "omit": 2,
    "repeats": 3,
    "network": "",
    "nodes": "",
    "nas_addresses": "",
    "nas_server": "",
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
    words = iperf.client("10.1.0.2", 5201, 10, 2, keys=keys) + iperf.server(keys.folder, "::1", 1)
    assert not any(keys.password in word for word in words)
    assert keys.password not in Path(keys.users).read_text()
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert keys.password != iperf.new_keys(tmp_path / "keys").password


def test_a_client_without_keys_differs_in_its_login_alone(tmp_path: Path) -> None:
    keys = iperf.Keys(tmp_path, "secret")
    with_login, without = (
        iperf.client("10.1.0.9", 5202, 10, 2, streams=4, keys=one) for one in (keys, None)
    )
    assert without == with_login[: len(without)]
    assert "--parallel=4" in without
    left = [word.partition("=")[0] for word in with_login[len(without) :]]
    assert left == ["--username", "--rsa-public-key-path"]


def test_all_pairs_in_both_directions_or_a_ring() -> None:
    assert pairs(["a", "b"], "all") == [("a", "b"), ("b", "a")]
    assert len(pairs(list("abcd"), "all")) == 12
    assert pairs(list("abc"), "ring") == [("a", "b"), ("b", "c"), ("c", "a")]
    assert pairs(["a", "b"], "none") == pairs(["a"], "ring") == pairs(["a"], "all") == []


def test_each_link_is_measured_with_each_number_of_connections() -> None:
    todo = links(settings(), ["a", "b"])
    assert len(todo) == len({link.name for link in todo}) == 2 * 2 * 3
    assert todo[0].name == "a to b, 1 streams, run 1"


def test_each_node_is_measured_to_each_address_of_the_nas_before_the_pairs() -> None:
    of_nas = addresses_of("10.1.0.9,10.1.0.10:5202")
    todo = links(settings(streams="4", repeats=1), ["a", "b"], of_nas)
    assert [link.name.partition(",")[0] for link in todo] == [
        "a to 10.1.0.9",
        "b to 10.1.0.9",
        "a to 10.1.0.10:5202",
        "b to 10.1.0.10:5202",
        "a to b",
        "b to a",
    ]
    assert [link.nas for link in todo] == [of_nas[0]] * 2 + [of_nas[1]] * 2 + [None] * 2
    # Of the NAS there is a link already from one node.
    alone = links(settings(), ["a"], of_nas)
    assert {link.receiver for link in alone} == {"10.1.0.9", "10.1.0.10:5202"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        (" nas1.example.org , ", [NasAddress("nas1.example.org", 5201)]),
        ("10.1.0.9:5202", [NasAddress("10.1.0.9", 5202)]),
        ("fd00::9,[fd00::9]:5202", [NasAddress("fd00::9"), NasAddress("fd00::9", 5202)]),
        ("10.1.0.9,10.1.0.9:5201", [NasAddress("10.1.0.9")]),
    ],
)
def test_an_address_of_the_nas_may_have_a_port(text: str, found: list[NasAddress]) -> None:
    assert addresses_of(text) == found
    assert addresses_of(",".join(one.name for one in found)) == found


@pytest.mark.parametrize("text", ["10.1.0.9:0", "10.1.0.9:x", "--server", "a b", "[fd00::9", "a;b"])
def test_what_is_no_address_of_the_nas_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="nas_addresses names"):
        addresses_of(text)


def test_a_program_without_addresses_and_nothing_to_measure_are_refused() -> None:
    with pytest.raises(SettingError, match="nas_server is '/opt/serve', and nas_addresses is empt"):
        links(settings(nas_server="/opt/serve"), ["a", "b"])
    with pytest.raises(SettingError, match="nothing is to be measured"):
        links(settings(pairs="none"), ["a", "b"])


def test_the_nas_is_not_measured_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["network.py", "--results=r"])
    usual = network.settings()
    assert (usual.nas_addresses, usual.nas_server) == ("", ""), "off by default"


def test_the_sites_program_is_told_where_to_start_a_server(tmp_path: Path) -> None:
    assert nas.start_server("", NasAddress("10.1.0.9")) is None
    program = tmp_path / "serve"
    # What it starts stays, and has its output.
    program.write_text(
        f'#!/bin/sh\nsleep 600 &\necho $! >{tmp_path}/pid\necho "$@" >{tmp_path}/a\n'
    )
    program.chmod(0o755)
    try:
        assert nas.start_server(str(program), NasAddress("fd00::9", 5202)) == str(program)
        os.kill(int((tmp_path / "pid").read_text()), 0)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (tmp_path / "a").read_text() == "fd00::9 5202\n"
    program.write_text("#!/bin/sh\necho no such NAS >&2\nexit 3\n")
    with pytest.raises(SiteProgramError, match=r"nas-server: .*serve ended with 3: no such NAS"):
        nas.start_server(str(program), NasAddress("10.1.0.9"))


def test_the_words_of_iperf3_are_kept_where_a_server_refuses() -> None:
    at = NasAddress("10.1.0.9")
    busy = iperf.IperfError("iperf3: the server is busy running a test. try again later")
    assert nas.words("a", at, "", busy) == f"a to 10.1.0.9: {busy}"
    refused = iperf.IperfError("iperf3: unable to connect to server: Connection refused")
    said = nas.words("a", at, "", refused)
    assert "a at 10.1.0.9, port 5201 (Connection refused): start one there" in said
    assert said.endswith("nas_server")
    gone = iperf.IperfError("iperf3: unable to connect to server: No route to host")
    said = nas.words("a", at, "/opt/serve", gone)
    assert said.endswith("port 5201 (No route to host): /opt/serve was to start one")


def test_a_busy_server_is_waited_for_and_the_part_says_what_started_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = "iperf3: the server is busy running a test"
    answers: Iterator[dict[str, Any]] = iter([{"error": busy}, {"mb_per_second": 1.0}])
    asked: list[list[str]] = []

    def answer(command: list[str], *_: object) -> dict[str, Any]:
        asked.append(command)
        return next(answers)

    monkeypatch.setattr(steps, "answer", answer)
    monkeypatch.setattr("network.time.sleep", lambda _: None)
    at = NasAddress("10.1.0.9", 5202)
    found = network.to_nas(settings(), Link("a", at.name, 4, 1, at), at)
    assert found == {"address": "10.1.0.9", "nas_server": None, "mb_per_second": 1.0}
    assert asked[0] == asked[1]
    assert asked[0][-3:] == ["--streams=4", "10.1.0.9", "5202"]
    assert str(Path(sender.__file__)) in asked[0]
    assert not any("--keys" in word for word in asked[0])


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
        with pytest.raises(SettingError, match=r"two nodes are needed.*submit it to Slurm"):
            nodes_of(alone, ["a"])
    assert nodes_of("", ["a"], least=1) == ["a"]
    with pytest.raises(SettingError, match=r"there is only none: submit it to Slurm"):
        nodes_of("", [], least=1)


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
    one = {"from": "a", "to": "b", "streams": 4, "retransmits": 2, "to_nas": False}
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
    assert "NAS " not in said


def of_nas(**more: object) -> dict[str, Any]:
    return {**rows(20.0)[0], "to": "10.1.0.9", "to_nas": True, **more}


def nas_summary(*found: dict[str, Any], program: str | None = None) -> dict[str, Any]:
    return {
        "figures": {"rates": rates_of(found)},
        "parts": [{**row, "nas_server": program} for row in found],
        "versions": {"iperf3": "iperf 3.12"},
        "date": "2026-11-22",
    }


def test_the_report_tells_the_nas_from_nodes_and_who_started_its_server() -> None:
    summary = nas_summary(*rows(10.0), of_nas())
    said = network_report.markdown(summary)
    assert "| a | b | 4 | 10.00 | " in said
    assert "| a | NAS 10.1.0.9 | 4 | 20.00 | 20.00 to 20.00 | 2,500 | 2 |" in said
    assert "iperf3 listened already" in said
    said = network_report.markdown(nas_summary(of_nas(), program="/opt/serve"))
    assert "/opt/serve started iperf3" in said
    assert "listened already" not in said
    # Parts of before an upgrade say nothing of the NAS.
    earlier = [{name: row[name] for name in row if name != "to_nas"} for row in rows(10.0)]
    assert [rate["to_nas"] for rate in rates_of(earlier)] == [False]


def test_the_figure_has_the_nas_apart_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def png(picture: Any) -> bytes:
        drawn.append(picture.axes[0])
        return b""

    monkeypatch.setattr(drawing, "png", png)
    back = {**rows(5.0)[0], "from": "b", "to": "a"}
    network_report.figure(nas_summary(of_nas(), of_nas(**{"from": "b"}), *rows(10.0), back))
    network_report.figure(nas_summary(of_nas()))
    labels = [[label.get_text() for label in axis.get_xticklabels()] for axis in drawn]
    assert labels == [["a", "b", "NAS 10.1.0.9"], ["NAS 10.1.0.9"]]
    senders = [[label.get_text() for label in axis.get_yticklabels()] for axis in drawn]
    assert senders == [["a", "b"], ["a"]]
    # What separates the NAS.
    assert [len(axis.lines) for axis in drawn] == [1, 0]


def test_a_server_that_never_listens_is_not_waited_for_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "_SECONDS", 0.1)
    with (
        steps.started(["/usr/bin/sleep", "60"]) as server,
        pytest.raises(StepError, match="did not listen within"),
    ):
        network.listening(server)
