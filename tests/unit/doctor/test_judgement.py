"""What the doctor makes of answers."""

from datetime import UTC, datetime, timedelta

import pytest

from dsportal.doctor import finding
from dsportal.doctor.expected import Mount
from dsportal.doctor.finding import Finding, Line, State
from dsportal.doctor.judgement import (
    clock,
    days,
    disks,
    host_names,
    ldap,
    modes,
    mounts,
    services,
    slurm,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PAPERS = "rsize=524288,wsize=524288,nolock,soft,timeo=50,retrans=1,proto=tcp"
MOUNTINFO = f"""\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard
40 22 0:37 / /mnt/somebody\vs rw - fuse.x\v a\vb rw,user_id=1002
41 22 0:38 / /mnt/isilon1 rw,relatime - autofs systemd-1 rw,fd=45,pgrp=1,timeout=0
42 22 0:39 / /mnt/isilon1 rw,relatime shared:9 - nfs 10.0.0.1:/ifs rw,vers=3,{PAPERS}
43 22 0:40 / /mnt/isilon rw,relatime - nfs4 10.0.0.1:/ifs/home rw,vers=4.2,hard,local_lock=none
44 22 0:41 / /mnt/with\\040space rw - tmpfs tmpfs rw
45 22 0:42 / /mnt/waiting rw - autofs systemd-1 rw,fd=46
"""
NFS = Mount("/mnt/isilon1", "nfs", "10.0.0.1:/ifs", PAPERS)


@pytest.mark.parametrize(
    ("expected", "state", "found"),
    [
        (NFS, State.OK, "nfs from 10.0.0.1:/ifs, answers"),
        (Mount("/mnt/isilon", "nfs", options="_netdev,nofail,x-systemd.automount"), State.OK, ""),
        (Mount("/mnt/isilon", "nfs4"), State.OK, ""),
        (Mount("/mnt/with space"), State.OK, ""),
        (Mount("/mnt/isilon9", "nfs"), State.FAILED, "not mounted"),
        (Mount("/mnt/waiting", "nfs"), State.FAILED, "is of type autofs, not nfs"),
        (Mount("/", "nfs"), State.FAILED, "is of type ext4, not nfs"),
        (Mount("/mnt/isilon1", "nfs", "10.0.0.2:/ifs"), State.FAILED, "is from 10.0.0.1:/ifs, not"),
        (Mount("/mnt/isilon", "nfs", options=PAPERS), State.FAILED, f"lacks {PAPERS}"),
        (Mount("/mnt/isilon1", options="soft,timeo=51"), State.FAILED, "lacks timeo=51"),
    ],
)
def test_a_mount_is_held_against_what_was_expected(
    expected: Mount, state: State, found: str
) -> None:
    judged = mounts.judge(expected, MOUNTINFO)
    assert judged.state is state
    assert found in judged.found
    assert (judged.next_step == "") == (state is State.OK)


@pytest.mark.parametrize(
    ("left", "state"),
    [
        (timedelta(days=300), State.OK),
        (timedelta(days=21), State.OK),
        (timedelta(days=20, hours=23), State.WARNING),
        (timedelta(hours=1), State.WARNING),
        (timedelta(seconds=-1), State.FAILED),
    ],
)
def test_a_certificate_is_renewed_before_it_ends(left: timedelta, state: State) -> None:
    assert days.judge(NOW + left, NOW, "renew it").state is state


@pytest.mark.parametrize(
    ("ahead", "state", "words"),
    [
        (0.4, State.OK, "agrees"),
        (-1.9, State.OK, "agrees"),
        (3, State.WARNING, "3 s ahead of"),
        (-59, State.WARNING, "59 s behind"),
        (61, State.FAILED, "61 s ahead of"),
    ],
)
def test_clocks_may_differ_a_little(ahead: float, state: State, words: str) -> None:
    judged = clock.judge_against_hub(ahead)
    assert judged.state is state
    assert words in judged.found


def test_a_clock_that_nothing_keeps_right_is_told() -> None:
    assert clock.judge_kernel(0x2001, 0.003).state is State.OK
    assert clock.judge_kernel(0x2041, 16.0).state is State.WARNING


@pytest.mark.parametrize(
    ("free_gib", "all_gib", "free_files", "all_files", "state"),
    [
        (500, 1000, 1_000, 2_000, State.OK),
        (50, 1000, 1_000, 2_000, State.OK),
        (2, 10, 1_000, 2_000, State.OK),
        (0.9, 10, 1_000, 2_000, State.WARNING),
        (0.2, 10, 1_000, 2_000, State.FAILED),
        (0, 1000, 1_000, 2_000, State.FAILED),
        (500, 1000, 10, 2_000, State.FAILED),
        (500, 1000, 0, 0, State.OK),
    ],
)
def test_a_disk_needs_room_for_bytes_and_files(
    free_gib: float, all_gib: int, free_files: int, all_files: int, state: State
) -> None:
    sizes = (int(free_gib * disks.GIB), all_gib * disks.GIB)
    assert disks.judge("/", *sizes, free_files, all_files).state is state


@pytest.mark.parametrize(
    ("mode", "owner", "state"),
    [
        (0o100600, "jupyterhub", State.OK),
        (0o100400, "jupyterhub", State.OK),
        (0o100640, "jupyterhub", State.FAILED),
        (0o100604, "jupyterhub", State.FAILED),
        (0o100600, "root", State.FAILED),
    ],
)
def test_a_secret_is_its_owners_alone(mode: int, owner: str, state: State) -> None:
    assert modes.judge("/etc/secret", mode, owner, "jupyterhub").state is state


@pytest.mark.parametrize(
    ("line", "state", "words"),
    [
        ("NodeName=n1 State=IDLE ThreadsPerCore=1", State.OK, "idle"),
        ("NodeName=n1 State=MIXED ThreadsPerCore=1", State.OK, "mixed"),
        ("NodeName=n1 State=ALLOCATED+COMPLETING X=1", State.OK, "allocated"),
        ("NodeName=n1 State=IDLE+PLANNED X=1", State.OK, "planned"),
        ("NodeName=n1 State=IDLE+CLOUD+POWERED_DOWN X=1", State.OK, "powered_down"),
        ("NodeName=n1 State=IDLE+MAINTENANCE X=1", State.WARNING, "takes no new jobs"),
        ("NodeName=n1 State=DOWN+DRAIN X=1", State.WARNING, "down+drain"),
        ("NodeName=n1 State=IDLE+NOT_RESPONDING X=1", State.FAILED, "not_responding"),
        (
            "NodeName=n1 State=IDLE+DRAIN X=1 Reason=disk full [root@2026-11-21T19:00:00]",
            State.WARNING,
            "idle+drain (disk full)",
        ),
        ("NodeName=n1 State=DOWN X=1 Reason=Not responding [slurm@x]", State.FAILED, "Not resp"),
        ("NodeName=n1 State=IDLE* X=1", State.FAILED, "idle*"),
        ("NodeName=n1 State=UNKNOWN X=1", State.FAILED, "unknown"),
        ("NodeName=n1 State=NEW_WORD+PLANNED X=1", State.FAILED, "new_word"),
        ("NodeName=n1 State=MIXED+FAIL X=1", State.FAILED, "mixed+fail"),
        ("", State.FAILED, "no state"),
    ],
)
def test_a_nodes_state_is_read(line: str, state: State, words: str) -> None:
    judged = slurm.judge_node(line)
    assert judged.state is state
    assert words in judged.found


@pytest.mark.parametrize(
    ("config", "state"),
    [
        ("HASH_VAL                = Match\n", State.OK),
        ("HASH_VAL                = Different Ours=0x1 Slurmctld=0x2\n", State.FAILED),
        ("AccountingStorageHost   = localhost\n", State.WARNING),
    ],
)
def test_slurm_conf_is_the_controllers(config: str, state: State) -> None:
    assert slurm.judge_settings(config).state is state


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("Slurmctld(primary) at head is UP\n", State.OK),
        ("Slurmctld(primary) at head is UP\nSlurmctld(backup) at h2 is DOWN\n", State.FAILED),
        ("Slurmctld(primary) at head is DOWN\n", State.FAILED),
        ("", State.FAILED),
    ],
)
def test_a_controller_answers(said: str, state: State) -> None:
    assert slurm.judge_ping(said).state is state


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("error: Munge decode failed: Rewound credential", "clock"),
        ("error: Munge encode failed: Failed to access /run/munge/munge.socket.2", "munged"),
        ("slurm_load_ctl_conf error: Unable to contact slurm controller", "slurmctld"),
    ],
)
def test_what_slurm_complains_of_leads_to_the_part(words: str, step: str) -> None:
    assert step in slurm.judge_refusal(words).next_step


# Success, and invalidCredentials.
BOUND = bytes.fromhex("300c02010261070a010004000400")
REFUSED = bytes.fromhex("300c02010261070a013104000400")


def test_ldap_messages_are_those_of_the_rfc() -> None:
    assert ldap.bind("cn=a", "b") == bytes.fromhex("3011020102600c0201030404636e3d61800162")
    long = ldap.bind("cn=" + "a" * 200, "b")
    assert ldap.size_of(long) == len(long)
    assert (ldap.result(BOUND), ldap.result(REFUSED)) == (0, 49)
    assert [ldap.size_of(BOUND[:size]) for size in (0, 1, 2)] == [None, None, len(BOUND)]


@pytest.mark.parametrize(
    "text", [b"HTTP/1.1 400 Bad Request\r\n", BOUND[:8], b"\x30\x03\x02\x01\x01"]
)
def test_what_is_no_ldap_is_told(text: bytes) -> None:
    with pytest.raises(ldap.MessageError):
        ldap.result(text)


def test_what_is_not_ldap_from_its_first_byte_is_not_waited_for() -> None:
    with pytest.raises(ldap.MessageError):
        ldap.size_of(b"HTTP/1.1 400 Bad Request")


def test_findings_are_joined_to_the_worst() -> None:
    good, bad = finding.ok("a"), finding.failed("b", "do c")
    assert finding.worst([good, good]) == Finding(State.OK, "a; a")
    assert finding.worst([good, bad, bad]) == Finding(State.FAILED, "b; b", "do c")


def test_a_line_stays_one_line() -> None:
    line = Line("disk /a\nb", finding.failed("x\x1b[31m", "do\ty"))
    assert finding.text([line]) == "failed    disk /a b: x [31m -> do y\n"


UNIT_FILES = """\
portal-hub.service enabled enabled
portal-firewall.service enabled enabled
portal-backup.service static -
"""


@pytest.mark.parametrize(
    ("hub", "firewall", "backup", "words"),
    [
        ("active running", "active exited", "inactive dead", "all 3 run"),
        ("active running", "active exited", "active running", "all 3 run"),
        ("inactive dead", "active exited", "inactive dead", "portal-hub.service of 3"),
        ("activating auto-restart", "active exited", "inactive dead", "portal-hub.service of 3"),
        ("active running", "inactive dead", "inactive dead", "portal-firewall.service of 3"),
        ("active running", "active exited", "failed failed", "portal-backup.service of 3"),
    ],
)
def test_services_of_systemd_run_or_wait_for_their_time(
    hub: str, firewall: str, backup: str, words: str
) -> None:
    units = "\n".join(
        f"portal-{name}.service loaded {state} Words about it"
        for name, state in (("hub", hub), ("firewall", firewall), ("backup", backup))
    )
    judged = services.judge_systemd(units, UNIT_FILES)
    assert words in judged.found
    assert judged.state is (State.OK if words == "all 3 run" else State.FAILED)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("hub    RUNNING   pid 1, uptime 0:00:09\nproxy  RUNNING   pid 2\n", "all 2 run"),
        ("hub    FATAL     Exited too quickly\nproxy  RUNNING   pid 2\n", "hub of 2 do not run"),
        ("", "there are none"),
    ],
)
def test_services_of_supervisor_run(status: str, words: str) -> None:
    assert words in services.judge_supervisor(status).found


HERE = frozenset({"10.0.0.1"})


@pytest.mark.parametrize(
    ("addresses", "below", "complaint", "found"),
    [
        (frozenset(), frozenset(), "", "p.org has no address"),
        (HERE, frozenset(), "", "names below p.org have no address"),
        (HERE, frozenset({"10.0.0.2"}), "", "*.p.org is 10.0.0.2, and p.org is 10.0.0.1"),
        (HERE, HERE, "Hostname mismatch", "certificate is not for *.p.org: Hostname mismatch"),
    ],
)
def test_host_names_of_users_that_do_not_lead_to_the_portal_are_told(
    addresses: frozenset[str], below: frozenset[str], complaint: str, found: str
) -> None:
    told = host_names.judge(host_names.Seen("p.org", addresses, below, complaint))
    assert told.state is State.FAILED
    assert found in told.found
    assert "*.p.org" in told.next_step or "in DNS" in told.next_step


def test_host_names_of_users_that_lead_there_are_well() -> None:
    told = host_names.judge(host_names.Seen("p.org", HERE | {"::1"}, HERE))
    assert told.state is State.OK
    assert told.found.endswith(" below p.org")
