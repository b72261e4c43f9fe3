import errno
import json
import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from jupyterhub_gpu_slurm.slurm import launcher

SESSION = "0123456789abcdef" * 2


@pytest.fixture
def account(tmp_path: Path) -> pwd.struct_passwd:
    mine = pwd.getpwuid(os.getuid())
    return pwd.struct_passwd((mine.pw_name, "x", mine.pw_uid, mine.pw_gid, "", str(tmp_path), ""))


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins for Slurm's programs that write down how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, output in {"sbatch": "42", "squeue": "", "scancel": ""}.items():
        program = folder / name
        program.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "$@" > "{folder}/{name}.argv"\n'
            f'/usr/bin/env > "{folder}/{name}.env"\n'
            f'/bin/cat > "{folder}/{name}.stdin"\necho "{output}"\n'
        )
        program.chmod(0o755)
    return folder


def ask(account: pwd.struct_passwd, programs: Path, request: object) -> dict[str, object]:
    settings = {"slurm_conf": "/etc/slurm.conf", "bin_dir": str(programs), "mark": "portal"}
    return launcher.answer(settings, account, json.dumps(request))


def test_a_submission_carries_the_mark_and_a_private_log(
    account: pwd.struct_passwd, programs: Path
) -> None:
    request = {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n"}
    assert ask(account, programs, request) == {"job_id": 42}
    argv = (programs / "sbatch.argv").read_text().splitlines()
    assert f"--comment=portal:{SESSION}" in argv
    assert "--export=ALL" in argv
    log_folder = Path(account.pw_dir, ".local/state/data-scientist-portal")
    assert f"--output={log_folder}/session-%j.log" in argv
    assert stat.S_IMODE(log_folder.stat().st_mode) == 0o700
    assert (programs / "sbatch.stdin").read_text() == "#!/bin/bash\n"


SUBMISSION = {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n", "input": '{"a": 1}'}


@pytest.fixture
def input_file(account: pwd.struct_passwd) -> Path:
    """Where the input of the session is, in a folder that is there already."""
    folder = Path(account.pw_dir, ".local/state/data-scientist-portal")
    folder.mkdir(parents=True)
    return folder / f"input-portal-{SESSION}.json"


def test_an_input_is_in_a_file_that_only_the_user_reads(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    input_file.parent.chmod(0o777)
    assert ask(account, programs, SUBMISSION) == {"job_id": 42}
    assert input_file.read_text() == '{"a": 1}'
    assert stat.S_IMODE(input_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(input_file.parent.stat().st_mode) == 0o700
    environment = (programs / "sbatch.env").read_text()
    assert f"PORTAL_SESSION_INPUT={input_file}\n" in environment
    for part in ("argv", "env", "stdin"):
        assert '{"a": 1}' not in (programs / f"sbatch.{part}").read_text()


def test_a_hub_that_puts_its_input_into_the_script_gets_no_file(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    before = {key: value for key, value in SUBMISSION.items() if key != "input"}
    assert ask(account, programs, before) == {"job_id": 42}
    assert not input_file.exists()
    assert "PORTAL_SESSION_INPUT" not in (programs / "sbatch.env").read_text()


@pytest.mark.parametrize("kind", ["link", "dangling link", "file"])
def test_what_lies_at_an_inputs_name_is_neither_followed_nor_overwritten(
    account: pwd.struct_passwd, programs: Path, input_file: Path, kind: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    if kind != "dangling link":
        other.write_text("mine")
    if kind == "file":
        other.rename(input_file)
    else:
        input_file.symlink_to(other)
    assert ask(account, programs, SUBMISSION)["refused"] is True
    assert not (programs / "sbatch.argv").exists()
    if kind == "dangling link":
        assert not other.exists()
    else:
        assert input_file.read_text() == "mine"


@pytest.mark.root
def test_no_input_is_written_to_somebody_elses_folder(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    os.chown(input_file.parent, pwd.getpwnam("nobody").pw_uid, -1)
    answer = ask(account, programs, SUBMISSION)
    assert "somebody else's" in str(answer["error"])
    assert not input_file.exists()


def test_a_full_home_is_named_and_nothing_is_left(
    account: pwd.struct_passwd, programs: Path, input_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no file system with quotas here.
    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    answer = ask(account, programs, SUBMISSION)
    assert "Disk quota exceeded" in str(answer["error"])
    assert not input_file.exists()
    assert not (programs / "sbatch.argv").exists()


def test_an_input_goes_where_slurm_refuses_its_job(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    (programs / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: no' >&2\nexit 1\n")
    assert ask(account, programs, SUBMISSION)["refused"] is True
    assert not input_file.exists()


def test_an_input_stays_where_slurm_may_have_taken_its_job(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    words = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    (programs / "sbatch").write_text(f"#!/bin/bash\necho '{words}' >&2\nexit 1\n")
    assert "error" in ask(account, programs, SUBMISSION)
    assert input_file.exists()


def test_an_input_goes_when_its_session_is_cancelled(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    ask(account, programs, SUBMISSION)
    other = input_file.with_name(f"input-portal-{'f' * 32}.json")
    other.touch()
    ask(account, programs, {"verb": "cancel", "session": SESSION})
    assert list(input_file.parent.iterdir()) == [other]


def test_old_inputs_without_a_job_go(
    account: pwd.struct_passwd, programs: Path, input_file: Path
) -> None:
    waits, gone, young, *others = (
        input_file.with_name(name)
        for name in (
            f"input-portal-{'a' * 32}.json",
            f"input-portal-{'b' * 32}.json",
            f"input-portal-{'c' * 32}.json",
            f"input-other-{'b' * 32}.json",
            # Of a hub whose mark begins with this one's.
            f"input-portal-test-{'b' * 32}.json",
        )
    )
    for file in (waits, gone, young, *others):
        file.touch()
        if file != young:
            os.utime(file, (1, 1))
    with_comments(programs, {7: f"portal:{'a' * 32}"})
    ask(account, programs, SUBMISSION)
    assert set(input_file.parent.iterdir()) == {input_file, waits, young, *others}


def test_what_a_sites_cli_filter_prints_is_no_jobs_number(
    account: pwd.struct_passwd, programs: Path
) -> None:
    (programs / "sbatch").write_text("#!/bin/bash\ncat >/dev/null\necho Welcome, 7\necho '12;a'\n")
    assert ask(account, programs, SUBMISSION) == {"job_id": 12}


def test_slurms_programs_get_nothing_of_the_callers_environment(
    account: pwd.struct_passwd, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    ask(account, programs, {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n"})
    environment = (programs / "sbatch.env").read_text()
    assert "SECRET_OF_THE_CALLER" not in environment
    assert {"SLURM_CONF=/etc/slurm.conf", "TZ=UTC", "LC_ALL=C"} <= set(environment.split())


def with_comments(programs: Path, comments: dict[int, str]) -> None:
    """Let the stand-in for squeue tell comments, of all jobs or of one, as Slurm does."""
    for job_id, comment in comments.items():
        (programs / f"comment-{job_id}").write_text(f"{comment}\n")
    (programs / "squeue").write_text(
        f"""#!/bin/bash
for word in "$@"; do case "$word" in --jobs=*)
    file="{programs}/comment-${{word#--jobs=}}"
    if [ -e "$file" ]; then exec cat "$file"; fi
    echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1
esac; done
for file in "{programs}"/comment-*; do printf '%s|' "${{file##*-}}"; cat "$file"; done
"""
    )


def test_only_jobs_with_the_mark_of_the_session_are_cancelled(
    account: pwd.struct_passwd, programs: Path
) -> None:
    comments = {
        7: f"portal:{SESSION}",
        8: f"portal:{'f' * 32}",
        9: f"other:{SESSION}",
        10: "(null)",
    }
    with_comments(programs, {**comments, 11: "x|portal"})
    assert ask(account, programs, {"verb": "cancel", "session": SESSION}) == {"job_ids": [7]}
    assert (programs / "scancel.argv").read_text().splitlines()[-1] == "7"


def test_a_session_without_jobs_cancels_nothing(account: pwd.struct_passwd, programs: Path) -> None:
    assert ask(account, programs, {"verb": "cancel", "session": SESSION}) == {"job_ids": []}
    assert not (programs / "scancel.argv").exists()


@pytest.mark.parametrize(
    "request_",
    [
        {},
        [],
        {"verb": "run", "cmd": "id"},
        {"verb": ["submit"]},
        {"verb": {}},
        {"verb": None},
        {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n\ud800"},
        {"verb": "end", "session": SESSION, "job_id": 42, "user": "x"},
        {"verb": "submit", "session": SESSION},
        {"verb": "submit", "session": SESSION, "script": "--wrap=id"},
        {"verb": "submit", "session": "../../x", "script": "#!/bin/bash\n"},
        {"verb": "cancel", "session": "1; id"},
        {"verb": "cancel", "session": 12},
    ],
)
def test_other_requests_are_refused(
    account: pwd.struct_passwd, programs: Path, request_: object
) -> None:
    assert "error" in ask(account, programs, request_)
    assert not list(programs.glob("*.argv"))


def test_slurms_no_is_told_from_a_failure(account: pwd.struct_passwd, programs: Path) -> None:
    (programs / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: no' >&2\nexit 1\n")
    request = {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n"}
    assert ask(account, programs, request) == {"error": "sbatch: error: no", "refused": True}
    (programs / "sbatch").unlink()
    assert ask(account, programs, request)["refused"] is False


def test_only_the_newest_logs_are_kept(account: pwd.struct_passwd, programs: Path) -> None:
    folder = Path(account.pw_dir, ".local/state/data-scientist-portal")
    folder.mkdir(parents=True)
    for number in range(25):
        log = folder / f"session-{number}.log"
        log.touch()
        os.utime(log, (number, number))
    ask(account, programs, {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n"})
    kept = sorted(int(log.stem.removeprefix("session-")) for log in folder.iterdir())
    assert kept == list(range(5, 25))


def test_only_this_hubs_jobs_are_listed(account: pwd.struct_passwd, programs: Path) -> None:
    comments = {7: f"portal:{SESSION}", 8: f"other:{SESSION}", 9: "(null)", 10: "portal:short"}
    with_comments(programs, comments)
    assert ask(account, programs, {"verb": "list"}) == {"sessions": {"7": SESSION}}


@pytest.mark.parametrize(
    "comment",
    [
        f"x\n9|portal:{SESSION}",
        f"portal:{'f' * 32}\n9|portal:{SESSION}",
        f"x\r9|portal:{SESSION}",
        f"x\x0b9|portal:{SESSION}",
        f"x\x1e9|portal:{SESSION}",
        f"x\u20289|portal:{SESSION}",
        f"portal:{SESSION}\n",
        f"portal:{SESSION}\nx",
        f" portal:{SESSION}",
        f"portal:{SESSION}\r",
    ],
)
def test_a_comment_cannot_forge_a_session(
    account: pwd.struct_passwd, programs: Path, comment: str
) -> None:
    with_comments(programs, {7: f"portal:{'e' * 32}", 8: comment, 9: "(null)"})
    assert ask(account, programs, {"verb": "list"}) == {"sessions": {"7": "e" * 32}}
    assert ask(account, programs, {"verb": "cancel", "session": SESSION}) == {"job_ids": []}


def test_a_slurm_that_stops_answering_is_no_missing_job(
    account: pwd.struct_passwd, programs: Path
) -> None:
    with_comments(programs, {7: f"portal:{SESSION}"})
    program = (programs / "squeue").read_text().replace("exec cat", "exit 1; cat")
    (programs / "squeue").write_text(program)
    assert "error" in ask(account, programs, {"verb": "cancel", "session": SESSION})


DEPLOYED = Path(launcher.__file__)


@pytest.fixture
def deployed(tmp_path: Path) -> Path:
    """The launcher as it is deployed: a file of its own, with its settings beside it."""
    file = tmp_path / "slurm-launcher"
    file.write_text(f"#!/usr/bin/python3 -IBS\n{DEPLOYED.read_text()}")
    file.chmod(0o755)
    settings = {"slurm_conf": "/c", "bin_dir": str(tmp_path), "mark": "portal"}
    Path(f"{file}.json").write_text(json.dumps(settings))
    return file


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\xfd", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 10_000, "not JSON"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"verb": []}', "the verbs are"),
        (b'{"verb": "list"' + b" " * (1 << 20), "longer than"),
        (b'{"verb": "cancel", "session": "\\ud800"}', "32 hexadecimal digits"),
    ],
)
def test_bad_input_ends_in_one_line(deployed: Path, text: bytes, words: str) -> None:
    done = subprocess.run([deployed], input=text, capture_output=True, check=True)
    assert words in json.loads(done.stdout)["error"]
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b"slurm-launcher: ready\n"


def test_an_answer_that_nobody_reads_ends_in_one_line(deployed: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = [deployed]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=writing, stderr=-1, check=False)
    os.close(writing)
    ready, complaint = done.stderr.splitlines()
    assert (done.returncode, ready) == (1, b"slurm-launcher: ready")
    assert complaint.startswith(b"slurm-launcher: BrokenPipeError")


def test_its_name_may_have_a_dot(deployed: Path) -> None:
    named = deployed.rename(deployed.with_name("launcher.py"))
    Path(f"{deployed}.json").rename(f"{named}.json")
    done = subprocess.run([named], input=b"{}", capture_output=True, check=True)
    assert "the verbs are" in json.loads(done.stdout)["error"]


def test_settings_that_are_not_there_end_in_one_line(deployed: Path) -> None:
    Path(f"{deployed}.json").unlink()
    done = subprocess.run([deployed], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines()), done.stdout) == (1, 2, b"")


@pytest.mark.root
def test_its_user_cannot_look_into_it(deployed: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for folder in (deployed.parent, *deployed.parent.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path(folder.anchor):
            folder.chmod(folder.stat().st_mode | 0o055)
    command = subprocess.Popen(
        [deployed], stdin=-1, stdout=-1, stderr=-1, user=nobody.pw_uid, group=nobody.pw_gid
    )
    with command:
        assert command.stderr
        assert command.stderr.readline() == b"slurm-launcher: ready\n"
        for name, verb in (("mem", "r+b"), ("environ", "rb")):
            code = f"open('/proc/{command.pid}/{name}', '{verb}')"
            argv = ["/usr/bin/python3", "-c", code]
            done = subprocess.run(
                argv, user=nobody.pw_uid, group=nobody.pw_gid, capture_output=True, check=False
            )
            assert b"PermissionError" in done.stderr
        command.communicate(b"{}")


def log_of(account: pwd.struct_passwd, job_id: int) -> Path:
    folder = Path(account.pw_dir, ".local/state/data-scientist-portal")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"session-{job_id}.log"


def test_the_end_of_a_log_is_read(account: pwd.struct_passwd, programs: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(10_000)) + "\n\n" + "x" * 5000 + "\n"
    log_of(account, 7).write_text(text)
    lines = ask(account, programs, {"verb": "log", "job_id": 7})["lines"]
    assert isinstance(lines, list)
    assert lines[-2] == "line 9999"
    assert lines[-1] == "x" * 300
    assert len(lines) == 15


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "folder"])
def test_what_is_no_plain_log_is_not_read(
    account: pwd.struct_passwd, programs: Path, kind: str, tmp_path: Path
) -> None:
    log = log_of(account, 7)
    if kind == "link":
        (tmp_path / "secret").write_text("secret")
        log.symlink_to(tmp_path / "secret")
    elif kind == "pipe":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    assert ask(account, programs, {"verb": "log", "job_id": 7}) == {"lines": []}


@pytest.mark.parametrize("job_id", [None, "7", "../../etc/passwd", -1, True, 1.5])
def test_a_log_is_asked_for_by_number(
    account: pwd.struct_passwd, programs: Path, job_id: object
) -> None:
    assert "error" in ask(account, programs, {"verb": "log", "job_id": job_id})


def with_sbatch(programs: Path, complaint: str, code: int = 0) -> None:
    """Let the stand-in for sbatch print on its standard error."""
    (programs / "sbatch").write_text(
        f'#!/bin/bash\nprintf "%s\\n" "$@" > "{programs}/sbatch.argv"\n'
        f"/bin/cat >&2 <<'END'\n{complaint}\nEND\nexit {code}\n"
    )


FORECAST = (
    "sbatch: Job 12 to start at 2026-11-21T14:05:00 using 8 processors on nodes node001 "
    "in partition sxm2"
)


def test_a_forecast_is_read_and_submits_nothing(account: pwd.struct_passwd, programs: Path) -> None:
    with_sbatch(programs, FORECAST)
    request = {"verb": "forecast", "script": "#!/bin/bash\n"}
    assert ask(account, programs, request) == {"start": "2026-11-21T14:05:00"}
    assert "--test-only" in (programs / "sbatch.argv").read_text().splitlines()


def test_what_can_never_start_is_told_with_slurms_words(
    account: pwd.struct_passwd, programs: Path
) -> None:
    words = "allocation failure: Requested node configuration is not available"
    with_sbatch(programs, words, code=1)
    answer = ask(account, programs, {"verb": "forecast", "script": "#!/bin/bash\n"})
    assert answer == {"never": words}


def test_a_forecast_that_cannot_be_read_is_an_error(
    account: pwd.struct_passwd, programs: Path
) -> None:
    with_sbatch(programs, "hello")
    assert "error" in ask(account, programs, {"verb": "forecast", "script": "#!/bin/bash\n"})


OPERATOR = "slurm-operator"
ME = pwd.getpwuid(os.getuid())
RUNNING = f"42|{ME.pw_uid}|RUNNING|sxm2|1:00:00"
EXTEND = {
    "verb": "extend",
    "session": SESSION,
    "job_id": 42,
    "user": ME.pw_name,
    "minutes": 90,
}


@pytest.fixture
def operator(account: pwd.struct_passwd) -> pwd.struct_passwd:
    return pwd.struct_passwd((OPERATOR, *account[1:]))


@pytest.fixture
def cluster(programs: Path) -> Path:
    """A stand-in cluster of one job, whose limit scontrol really changes."""
    (programs / "job").write_text(RUNNING)
    (programs / "comment").write_text(f"portal:{SESSION}\n")
    (programs / "max_time").write_text("12:00:00")
    (programs / "squeue").write_text(
        f"""#!/bin/bash
case "$*" in
*%k) cat "{programs}/comment" ;;
*) cat "{programs}/job" ;;
esac
"""
    )
    (programs / "scontrol").write_text(
        f"""#!/bin/bash
if [ "$1" = update ]; then
    printf "%s\n" "$@" > "{programs}/scontrol.argv"
    sed -i "s/[^|]*$/${{3#TimeLimit=}}:00/" "{programs}/job"
else
    echo "PartitionName=sxm2 AllowGroups=ALL MaxTime=$(cat "{programs}/max_time") State=UP"
fi
"""
    )
    (programs / "scontrol").chmod(0o755)
    return programs


def order(account: pwd.struct_passwd, programs: Path, request: object) -> dict[str, object]:
    settings = {"slurm_conf": "/c", "bin_dir": str(programs), "mark": "portal"}
    return launcher.answer({**settings, "operator": OPERATOR}, account, json.dumps(request))


def test_the_operator_raises_the_limit_of_a_session(
    operator: pwd.struct_passwd, cluster: Path
) -> None:
    assert order(operator, cluster, EXTEND) == {"minutes": 90}
    argv = (cluster / "scontrol.argv").read_text().split()
    assert argv == ["update", "JobId=42", "TimeLimit=90"]


@pytest.mark.parametrize(
    "change",
    [
        {"job": f"42|{ME.pw_uid + 1}|RUNNING|sxm2|1:00:00"},
        {"job": f"43|{ME.pw_uid}|RUNNING|sxm2|1:00:00"},
        {"job": f"42_1|{ME.pw_uid}|RUNNING|sxm2|1:00:00"},
        {"job": f"42|{ME.pw_uid}|PENDING|sxm2|1:00:00"},
        {"job": f"42|{ME.pw_uid}|RUNNING|sxm2|UNLIMITED"},
        {"job": f"42|{ME.pw_uid}|RUNNING|sxm2|1:30:00"},
        {"job": f"{RUNNING}\n{RUNNING}"},
        {"job": ""},
        {"comment": f"portal:{'f' * 32}\n"},
        {"comment": f"other:{SESSION}\n"},
        {"comment": f"portal:{SESSION}x\n"},
        {"comment": f"x\nportal:{SESSION}\n"},
        {"comment": f"portal:{SESSION}\nx\n"},
        {"comment": f"portal:{SESSION}\n\n"},
        {"comment": "(null)\n"},
        {"comment": ""},
        {"max_time": "1:29:00"},
    ],
)
def test_no_other_job_is_made_longer(
    operator: pwd.struct_passwd, cluster: Path, change: dict[str, str]
) -> None:
    for name, text in change.items():
        (cluster / name).write_text(text)
    outcome = order(operator, cluster, EXTEND)
    assert outcome.get("refused") is True, outcome
    assert not (cluster / "scontrol.argv").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"minutes": 0},
        {"minutes": -5},
        {"minutes": "90"},
        {"minutes": 90.5},
        {"minutes": True},
        {"minutes": 10**9},
        {"job_id": "42"},
        {"job_id": "42 Comment=x"},
        {"job_id": 0},
        {"session": "x"},
        {"user": "no such user"},
        {"user": 0},
        {"user": ""},
        {"user": "root\u0000"},
    ],
)
def test_an_extension_is_spelt_strictly(
    operator: pwd.struct_passwd, cluster: Path, change: dict[str, object]
) -> None:
    assert "error" in order(operator, cluster, {**EXTEND, **change})
    assert not (cluster / "scontrol.argv").exists()


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "submit", "session": SESSION, "script": "#!/bin/bash\n"},
        {"verb": "cancel", "session": SESSION},
        {"verb": "list"},
        {"verb": "log", "job_id": 42},
    ],
)
def test_the_operator_can_do_nothing_else(
    operator: pwd.struct_passwd, programs: Path, request_: object
) -> None:
    assert order(operator, programs, request_)["error"] == "the verbs are: " + ", ".join(
        launcher.OPERATOR_VERBS
    )
    assert not list(programs.glob("*.argv"))


END = {"verb": "end", "session": SESSION, "job_id": 42, "user": ME.pw_name}
NOBODYS_UID = 3_999_999_999


@pytest.mark.parametrize("uid", [ME.pw_uid, NOBODYS_UID])
def test_the_operator_ends_a_session(operator: pwd.struct_passwd, cluster: Path, uid: int) -> None:
    with pytest.raises(KeyError):
        pwd.getpwuid(NOBODYS_UID)
    (cluster / "job").write_text(f"42|{uid}\n")
    assert order(operator, cluster, END) == {"job_ids": [42]}
    assert (cluster / "scancel.argv").read_text() == "42\n"


@pytest.mark.root
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job": f"42|{pwd.getpwnam('nobody').pw_uid}\n"}, "is no job of this user"),
        ({"job": f"43|{ME.pw_uid}\n"}, "is no job of this user"),
        ({"job": f"42_1|{ME.pw_uid}\n"}, "is no job of this user"),
        ({"job": f"42|{ME.pw_uid}\n42|{ME.pw_uid}\n"}, "is no job of this user"),
        ({"comment": f"portal:{'f' * 32}\n"}, "is not this session's"),
        ({"comment": f"other:{SESSION}\n"}, "is not this session's"),
        ({"comment": f"x\nportal:{SESSION}\n"}, "is not this session's"),
        ({"comment": f"portal:{SESSION}\nx\n"}, "is not this session's"),
        ({"comment": "(null)\n"}, "is not this session's"),
    ],
)
def test_the_operator_ends_no_other_job(
    operator: pwd.struct_passwd, cluster: Path, change: dict[str, str], words: str
) -> None:
    (cluster / "job").write_text(f"42|{ME.pw_uid}\n")
    for name, text in change.items():
        (cluster / name).write_text(text)
    answer = order(operator, cluster, END)
    assert words in str(answer["error"])
    assert answer["refused"] is True
    assert not (cluster / "scancel.argv").exists()


@pytest.mark.parametrize(
    "change",
    [{"job_id": "42"}, {"job_id": 0}, {"job_id": True}, {"session": "x"}, {"session": None}],
)
def test_an_end_is_spelt_strictly(
    operator: pwd.struct_passwd, cluster: Path, change: dict[str, object]
) -> None:
    (cluster / "job").write_text(f"42|{ME.pw_uid}\n")
    assert "error" in order(operator, cluster, {**END, **change})
    assert not (cluster / "scancel.argv").exists()


def test_a_session_that_has_ended_is_ended(operator: pwd.struct_passwd, cluster: Path) -> None:
    (cluster / "job").write_text("")
    assert order(operator, cluster, END) == {"job_ids": []}


ROW = "42|RUNNING|None|ada|sxm2|node001|2026-11-22T10:00:00|2026-11-22T18:00:00|8:00:00"
OTHERS_ROW = "43|RUNNING|None|ben|sxm2|node002|2026-11-22T10:00:00|2026-11-22T18:00:00|8:00:00"
WITHHELD = "43||||||||"
# As scontrol of Slurm 22.05 and 24.11 prints it.
CONFIG = "SlurmctldTimeout        = 120 sec\nSlurmUser               = slurm({uid})\n"


@pytest.fixture
def private(operator: pwd.struct_passwd, cluster: Path) -> Path:
    """A stand-in cluster that shows all jobs to its SlurmUser, who is the operator."""
    (cluster / "job").write_text(f"{ROW}\n{OTHERS_ROW}\n")
    (cluster / "comment").write_text(f"42|portal:{SESSION}\n43|(null)\n")
    (cluster / "config").write_text(CONFIG.format(uid=operator.pw_uid))
    (cluster / "level").write_text("None\n")
    for name, file in (("scontrol", "config"), ("sacctmgr", "level")):
        (cluster / name).write_text(f'#!/bin/bash\nexec /bin/cat "{cluster}/{file}"\n')
        (cluster / name).chmod(0o755)
    return cluster


def test_the_operator_tells_of_this_hubs_jobs_and_no_more_of_others_than_that_they_are(
    operator: pwd.struct_passwd, private: Path
) -> None:
    answer = order(operator, private, {"verb": "jobs", "job_ids": [42, 43]})
    assert answer == {"rows": [ROW, WITHHELD]}
    assert order(operator, private, {"verb": "marked"}) == {"rows": [ROW]}


def test_a_job_that_was_not_asked_for_is_not_told(
    operator: pwd.struct_passwd, private: Path
) -> None:
    (private / "comment").write_text(f"42|portal:{SESSION}\n43|portal:{SESSION}\n")
    assert order(operator, private, {"verb": "jobs", "job_ids": [42]}) == {"rows": [ROW]}


@pytest.mark.parametrize(
    "comment", [f"other:{SESSION}", f"portal:{SESSION}x", "portal:", "(null)", f"xportal:{SESSION}"]
)
def test_a_job_without_this_hubs_mark_is_withheld_and_not_missing(
    operator: pwd.struct_passwd, private: Path, comment: str
) -> None:
    (private / "comment").write_text(f"43|{comment}\n")
    assert order(operator, private, {"verb": "jobs", "job_ids": [43]}) == {"rows": [WITHHELD]}


def test_anothers_comment_takes_no_mark_away(operator: pwd.struct_passwd, private: Path) -> None:
    # The jobs' own lines, and before and after them a comment of several lines.
    forged = f"41|portal:{SESSION}\n42|x\n"
    (private / "comment").write_text(f"{forged}42|portal:{SESSION}\n43|(null)\n{forged}")
    answer = order(operator, private, {"verb": "jobs", "job_ids": [42, 43]})
    assert answer == {"rows": [ROW, WITHHELD]}
    assert order(operator, private, {"verb": "marked"}) == {"rows": [ROW]}


@pytest.mark.parametrize("level", ["None\n", ""])
def test_an_operator_who_is_none_does_not_say_that_a_job_is_not_there(
    operator: pwd.struct_passwd, private: Path, level: str
) -> None:
    (private / "config").write_text(CONFIG.format(uid=operator.pw_uid + 1))
    (private / "level").write_text(level)
    assert "hide" in str(order(operator, private, {"verb": "jobs", "job_ids": [42, 44]})["error"])


@pytest.mark.parametrize("level", ["Operator\n", "Administrator\n"])
def test_an_operator_of_the_accounting_says_that_a_job_is_not_there(
    operator: pwd.struct_passwd, private: Path, level: str
) -> None:
    (private / "config").write_text(CONFIG.format(uid=operator.pw_uid + 1))
    (private / "level").write_text(level)
    assert order(operator, private, {"verb": "jobs", "job_ids": [44]}) == {"rows": []}


def test_a_single_job_that_slurm_does_not_know_is_missing(
    operator: pwd.struct_passwd, private: Path
) -> None:
    (private / "squeue").write_text(
        "#!/bin/bash\necho 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1\n"
    )
    assert order(operator, private, {"verb": "jobs", "job_ids": [44]}) == {"rows": []}


def test_a_slurm_that_does_not_answer_the_operator_names_no_job_missing(
    operator: pwd.struct_passwd, private: Path
) -> None:
    (private / "squeue").write_text("#!/bin/bash\necho 'Socket timed out' >&2; exit 1\n")
    assert "error" in order(operator, private, {"verb": "jobs", "job_ids": [42]})


@pytest.mark.parametrize(
    "job_ids",
    [None, [], 42, "42", ["42"], [0], [-1], [True], [42, "43;id"], list(range(1, 10_002))],
)
def test_the_operators_question_is_spelt_strictly(
    operator: pwd.struct_passwd, private: Path, job_ids: object
) -> None:
    assert "error" in order(operator, private, {"verb": "jobs", "job_ids": job_ids})


@pytest.mark.parametrize(
    ("comment", "session"),
    [
        (f"portal:{SESSION}\n", SESSION),
        (f"other:{SESSION}\n", None),
        (f"portal:{SESSION}\nx\n", None),
        ("(null)\n", None),
        ("", None),
    ],
)
def test_the_operator_tells_whose_session_a_job_is(
    operator: pwd.struct_passwd, private: Path, comment: str, session: str | None
) -> None:
    (private / "comment").write_text(comment)
    request = {"verb": "session", "job_id": 42}
    assert order(operator, private, request) == {"session": session}


@pytest.mark.parametrize("verb", ["jobs", "marked", "session"])
def test_a_user_is_not_told_of_others_jobs(
    account: pwd.struct_passwd, private: Path, verb: str
) -> None:
    answer = order(account, private, {"verb": verb, "job_ids": [42], "job_id": 42})
    assert "the verbs are: submit" in str(answer["error"])


def test_a_user_cannot_extend(account: pwd.struct_passwd, cluster: Path) -> None:
    assert "the verbs are: submit" in str(order(account, cluster, EXTEND)["error"])
    assert not (cluster / "scontrol.argv").exists()


@pytest.mark.parametrize(
    ("complaint", "is_certain"),
    [
        ("slurm_update error: Job/step already completing or completed", True),
        ("slurm_update error: Socket timed out on send/recv operation", False),
    ],
)
def test_a_job_that_ends_meanwhile_is_told_from_a_time_out(
    operator: pwd.struct_passwd, cluster: Path, complaint: str, is_certain: bool
) -> None:
    shown = (cluster / "scontrol").read_text().splitlines()[-2]
    (cluster / "scontrol").write_text(
        f"""#!/bin/bash
if [ "$1" = update ]; then echo "{complaint}" >&2; exit 1; fi
{shown}
"""
    )
    assert order(operator, cluster, EXTEND) == {"error": complaint, "refused": is_certain}


def test_a_limit_that_did_not_change_is_no_success(
    operator: pwd.struct_passwd, cluster: Path
) -> None:
    program = (cluster / "scontrol").read_text()
    (cluster / "scontrol").write_text(program.replace("sed -i", "true"))
    outcome = order(operator, cluster, EXTEND)
    assert outcome == {"error": "job 42 has 60 minutes, not 90", "refused": False}


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30:00", 30),
        ("1:00:00", 60),
        ("1-00:30:00", 1470),
        ("5", 0),
        ("UNLIMITED", None),
    ],
)
def test_slurms_time_limits_are_read(text: str, minutes: int | None) -> None:
    assert launcher._minutes(text) == minutes
