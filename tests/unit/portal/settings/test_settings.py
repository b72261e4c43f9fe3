"""portal.toml: what is good, and what each mistake is answered with."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from dsportal.settings_file import SettingsError, check_part, load

SMALLEST = """\
[authentication]
method = "pam"
allowed_groups = ["data-scientists"]
[session]
python = "/opt/session/bin/python"
"""
LDAP = """\
[authentication]
allowed_groups = ["data-scientists"]
[authentication.ldap]
servers = ["ldap://127.0.0.1", "ldaps://ldap2.example.org:1636"]
user_base = "ou=people,dc=portal,dc=example"
group_base = "ou=groups,dc=portal,dc=example"
[session]
python = "/opt/session/bin/python"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "portal.toml"
    file.write_text(text, encoding="utf-8")
    return file


def problems(folder: Path, text: str) -> tuple[str, ...]:
    """Load a bad file; give its problems without the folder's name."""
    with pytest.raises(SettingsError) as caught:
        load(written(folder, text))
    assert all("\n" not in line for line in caught.value.problems)
    return tuple(line.replace(f"{folder}/", "") for line in caught.value.problems)


def matches(said: str, problem: str) -> bool:
    """Say whether a problem is told; ``…`` at its end stands for the rest of a longer rule."""
    return said.startswith(problem[:-1]) if problem.endswith("…") else said == problem


def with_key(table: str, line: str) -> str:
    """Add a line to a table of the smallest file; the table's own line number is 6."""
    return f"{SMALLEST}[{table}]\n{line}\n"


def test_the_smallest_file_has_working_defaults(tmp_path: Path) -> None:
    settings = load(written(tmp_path, SMALLEST))
    assert settings.hub.public_url == "http://0.0.0.0:8000"
    assert settings.session.cores_per_gpu == 8
    assert settings.session.memory_mb_per_gpu == 48 * 1024
    assert settings.session.default_hours == 8
    assert dict(settings.session.folders) == {}


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    settings = load(
        written(
            tmp_path,
            LDAP + 'default_hours = 4\n[session.folders]\nisilon = "/mnt/isilon"\n'
            '[slurm]\nquery_interval_seconds = 2\n[hub]\nname = "portal-test"\n',
        )
    )
    assert settings.authentication.ldap.servers[1] == "ldaps://ldap2.example.org:1636"
    assert settings.session.default_hours == 4.0
    assert settings.session.folders["isilon"] == "/mnt/isilon"
    assert settings.slurm.query_interval_seconds == 2.0
    assert settings.hub.name == "portal-test"


@pytest.mark.parametrize(
    ("table", "line", "problem"),
    [
        ("hub", "nmae = 'x'", "hub.nmae: is not a known key; did you mean name?"),
        ("hub", "colour = 'x'", "hub.colour: is not a known key"),
        ("hub", "name = 3", "hub.name = 3: must be text"),
        ("hub", 'name = "My Hub"', 'hub.name = "My Hub": must be 1 to 32 small letters…'),
        ("hub", 'name = "a\\nb"', 'hub.name = "a\\nb": must have no control characters'),
        (
            "hub",
            'public_url = "gopher://0.0.0.0:8000"',
            'hub.public_url = "gopher://0.0.0.0:8000": must be http://HOST:PORT…',
        ),
        (
            "hub",
            'public_url = "http://0.0.0.0:port"',
            'hub.public_url = "http://0.0.0.0:port": must be http://HOST:PORT…',
        ),
        (
            "hub",
            'public_url = "https://0.0.0.0:8000"',
            "hub = {...}: a public_url with https:// needs certificate_file…",
        ),
        (
            "hub",
            'subdomain_host = "https://10.0.0.1:8000"',
            'hub.subdomain_host = "https://10.0.0.1:8000": must be https://HOST[:PORT] with…',
        ),
        (
            "hub",
            'api_url = "http://0.0.0.0:8081"',
            'hub.api_url = "http://0.0.0.0:8081": must name an address that others can reach…',
        ),
        (
            "hub",
            'proxy_api_url = "http://127.0.0.1:8001/api"',
            'hub.proxy_api_url = "http://127.0.0.1:8001/api": must be http://HOST:PORT…',
        ),
        (
            "hub",
            'state_dir = "var/lib"',
            'hub.state_dir = "var/lib": must be an absolute path…',
        ),
        (
            "hub",
            'database_url = "postgresql//hub:secret@db/hub"',
            "hub.database_url = (not shown): must be postgresql://…",
        ),
        (
            "hub",
            'database_url = "postgresql://hub:secret@db/hub"',
            "hub.database_url = (not shown): must be postgresql://…",
        ),
        (
            "hub",
            'database_url = "postgresql://hub@db/hub?password=secret"',
            "hub.database_url = (not shown): must be postgresql://…",
        ),
        (
            "hub",
            'database_url = "mysql://db/hub"',
            "hub.database_url = (not shown): must be postgresql://…",
        ),
        ("hub", 'database_url = ["a"]', "hub.database_url = (not shown): must be text"),
        (
            "slurm",
            'launcher = "../launcher"',
            'slurm.launcher = "../launcher": must be an absolute path…',
        ),
        (
            "slurm",
            'sbatch_options = ["--uid=0"]',
            "slurm.sbatch_options = [\"--uid=0\"]: '--uid=0' is not --OPTION=VALUE…",
        ),
        (
            "profiles.small",
            'title = "Small"\npartition = "a b"',
            "profiles.small = {...}: 'a b' is not the name of a partition.",
        ),
        (
            "slurm",
            "query_interval_seconds = 0",
            "slurm.query_interval_seconds = 0: must be at least 0.1 (seconds)",
        ),
        (
            "slurm",
            "command_timeout_seconds = inf",
            "slurm.command_timeout_seconds = Infinity: must be a number that is finite",
        ),
        (
            "slurm",
            'command_timeout_seconds = "20"',
            'slurm.command_timeout_seconds = "20": must be a number',
        ),
        (
            "slurm",
            "command_timeout_seconds = true",
            "slurm.command_timeout_seconds = true: must be a number",
        ),
        (
            "authentication.ldap",
            'servers = ["http://ldap"]',
            'authentication.ldap.servers = "http://ldap": must be ldap://HOST[:PORT]…',
        ),
        (
            "authentication.ldap",
            'servers = "ldap://a"',
            'authentication.ldap.servers = "ldap://a": must be a list',
        ),
        (
            "authentication.ldap",
            'start_tls = "yes"',
            'authentication.ldap.start_tls = "yes": must be true or false',
        ),
        (
            "authentication.ldap",
            "connect_timeout_seconds = 0",
            "authentication.ldap.connect_timeout_seconds = 0: must be at least 1 (seconds)",
        ),
        (
            "authentication.ldap",
            "receive_timeout_seconds = 1e9",
            "authentication.ldap.receive_timeout_seconds = 1000000000.0: must be a whole number",
        ),
        (
            "authentication.ldap",
            'user_base = "people"',
            'authentication.ldap.user_base = "people": must be a distinguished name…',
        ),
        (
            "authentication.ldap",
            'user_attribute = "uid)(x"',
            'authentication.ldap.user_attribute = "uid)(x": must be the name of an attribute…',
        ),
        (
            "authentication.ldap",
            'user_filter = "objectClass=person"',
            'authentication.ldap.user_filter = "objectClass=person": must be a filter…',
        ),
        (
            "authentication.ldap",
            'bind_as = "{user}@corp.example"',
            'authentication.ldap.bind_as = "{user}@corp.example": must have {name}…',
        ),
        (
            "authentication.ldap",
            'bind_dn = "cn=reader,dc=x"',
            "authentication.ldap = {...}: bind_dn and bind_password_file go together",
        ),
        (
            "hub",
            "max_named_servers = -1",
            "hub.max_named_servers = -1: must be at least 0",
        ),
        ("limits", "max_gpus = 1", "limits.max_gpus: is not a known key"),
        (
            "limits.default",
            "max_gpu = 1",
            "limits.default.max_gpu: is not a known key; did you mean max_gpus?",
        ),
        (
            "limits.default",
            "max_gpus = -1",
            "limits.default.max_gpus = -1: must be at least 0 (GPUs)",
        ),
        (
            "limits.groups.students",
            "max_gpu = 1",
            "limits.groups.students.max_gpu: is not a known key; did you mean max_gpus?",
        ),
        (
            "limits.groups.students",
            "max_hours = 0",
            "limits.groups.students.max_hours = 0: must be more than 0 (hours)",
        ),
        (
            "limits.groups.students",
            'max_sessions = "many"',
            'limits.groups.students.max_sessions = "many": must be a whole number',
        ),
        (
            "limits.groups.students",
            "partitions = []",
            "limits.groups.students.partitions = []: must name at least one…",
        ),
        (
            "limits.groups.students",
            'partitions = ["a,b"]',
            'limits.groups.students.partitions = "a,b": must be one word…',
        ),
        (
            "limits.groups.students",
            'account = "a b"',
            'limits.groups.students.account = "a b": must be one word…',
        ),
        (
            'limits.groups."domain users"',
            "qos = 1",
            "limits.groups.domain users.qos = 1: must be text",
        ),
        (
            "limits.groups",
            "students = 3",
            "limits.groups.students = 3: must be a table",
        ),
        (
            "session.folders",
            '"a/b" = "/mnt"',
            'session.folders.a/b = "a/b": a folder\'s name must not…',
        ),
        (
            "session.folders",
            '".ssh" = "/mnt"',
            'session.folders..ssh = ".ssh": a folder\'s name must not…',
        ),
        (
            "session.folders",
            'isilon = "mnt"',
            'session.folders.isilon = "mnt": must be an absolute path…',
        ),
    ],
)
def test_each_mistake_is_one_line_that_names_it(
    tmp_path: Path, table: str, line: str, problem: str
) -> None:
    (found,) = problems(tmp_path, with_key(table, line))
    where, _, said = found.partition(": ")
    assert where in {"portal.toml:6", "portal.toml:7"}
    assert matches(said, problem), said


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cores_per_gpu = 0", "session.cores_per_gpu = 0: must be at least 1 (cores)"),
        ("cores_per_gpu = -1", "session.cores_per_gpu = -1: must be at least 1 (cores)"),
        ("cores_per_gpu = 1.5", "session.cores_per_gpu = 1.5: must be a whole number"),
        ("cores_per_gpu = true", "session.cores_per_gpu = true: must be a whole number"),
        ('cores_per_gpu = "8"', 'session.cores_per_gpu = "8": must be a whole number'),
        (
            "memory_mb_without_gpu = 10",
            "session.memory_mb_without_gpu = 10: must be at least 256 (MiB)",
        ),
        ("default_gpus = -1", "session.default_gpus = -1: must be at least 0 (GPUs)"),
        ("default_hours = 0", "session.default_hours = 0: must be more than 0 (hours)"),
        ("default_hours = nan", "session.default_hours = NaN: must be a number that is finite"),
        (
            'default_partition = "a,b"',
            'session.default_partition = "a,b": must be the name of one partition…',
        ),
        (
            'jupyter_path = ["/opt", "kernels"]',
            'session.jupyter_path = "kernels": must be an absolute path…',
        ),
        ("folders = 3", "session.folders = 3: must be a table"),
        (
            "start_timeout_seconds = 5",
            "session.start_timeout_seconds = 5: must be at least 10 (seconds)",
        ),
    ],
)
def test_a_bad_figure_of_a_session_is_named(tmp_path: Path, line: str, problem: str) -> None:
    (found,) = problems(tmp_path, f"{SMALLEST}{line}\n")
    assert matches(found, f"portal.toml:6: {problem}"), found


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('modules = ["-r"]', "must be the name of a module"),
        ('modules = ["a; id"]', "must be the name of a module"),
        ('interpreter = "bin/python"', "must be a program's name"),
        ('interpreter = "python -c"', "must be a program's name"),
        ('language = "perl"', "must be 'python' or 'R'"),
        ('environment = {"A-B" = "x"}', "must be the name of a variable"),
    ],
)
def test_a_kernel_that_could_run_something_else_is_refused(
    tmp_path: Path, line: str, problem: str
) -> None:
    text = f'{SMALLEST}[kernels.pytorch]\ndisplay_name = "PyTorch"\n{line}\n'
    (found,) = problems(tmp_path, text)
    assert found.startswith("portal.toml:8: kernels.pytorch.")
    assert problem in found


def test_a_kernel_with_modules_needs_to_know_how_they_are_loaded(tmp_path: Path) -> None:
    text = f'{SMALLEST}[kernels.a]\ndisplay_name = "A"\nmodules = ["a"]\n'
    (found,) = problems(tmp_path, text)
    assert "the modules of kernel a need session.modules_init" in found


def test_the_templates_are_one_of_the_folders(tmp_path: Path) -> None:
    text = f'{SMALLEST}templates = "vorlagen"\n'
    (found,) = problems(tmp_path, text)
    assert "templates is vorlagen, which folders does not have" in found


def test_notes_are_of_folders_that_are_there(tmp_path: Path) -> None:
    text = f'{SMALLEST}[session.folder_notes]\nisilon = "The NAS."\n'
    (found,) = problems(tmp_path, text)
    assert "folder_notes has isilon, which folders does not have" in found


def test_an_accent_that_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    text = f'{SMALLEST}[look]\naccent = "#ffcc00"\n'
    (found,) = problems(tmp_path, text)
    assert "accent #ffcc00 has a contrast of 1.4:1 with the page" in found


def test_a_kernels_name_is_one_that_jupyter_takes(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, f'{SMALLEST}[kernels."My Kernel"]\ndisplay_name = "A"\n')
    assert "a kernel's name must be small letters" in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "portal.toml: authentication: must be set|portal.toml: session: must be set"),
        (
            SMALLEST.replace('python = "/opt/session/bin/python"', ""),
            "portal.toml:4: session.python: must be set",
        ),
        (
            SMALLEST.replace('"pam"', '"ldap"'),
            "portal.toml:1: authentication = {...}: "
            'method = "ldap" needs authentication.ldap.servers, '
            "authentication.ldap.user_base, authentication.ldap.group_base",
        ),
        (
            SMALLEST.replace('"pam"', '"kerberos"'),
            "portal.toml:2: authentication.method = \"kerberos\": must be 'ldap' or 'pam'",
        ),
        (
            SMALLEST.replace('["data-scientists"]', "[]"),
            "portal.toml:1: authentication = {...}: "
            "allowed_groups or admin_groups must name a group",
        ),
        (
            SMALLEST.replace('["data-scientists"]', '[" "]'),
            'portal.toml:3: authentication.allowed_groups = " ": must not be empty',
        ),
        (
            SMALLEST + '[hub]\napi_url = "http://127.0.0.1:8000"\n',
            "portal.toml:6: hub = {...}: public_url, api_url and proxy_api_url need",
        ),
        (
            SMALLEST + "[hub]\nstandby = true\n",
            "portal.toml:6: hub = {...}: standby needs a database_url",
        ),
        ("hub = 3\n" + SMALLEST, "portal.toml:1: hub = 3: must be a table"),
        ("[hub\n", "portal.toml: is not TOML: Expected ']' at the end of a table declaration"),
        ("a = 1\na = 2\n", "portal.toml: is not TOML: Cannot overwrite a value"),
    ],
)
def test_a_file_that_cannot_work_says_why(tmp_path: Path, text: str, problem: str) -> None:
    found = "|".join(problems(tmp_path, text))
    assert found.startswith(problem)


def test_all_problems_are_told_at_once_in_the_files_order(tmp_path: Path) -> None:
    found = problems(tmp_path, "[hub]\nname = 1\ncolour = 2\n[slurm]\nsudo = 'sudo'\n" + SMALLEST)
    assert [line.split(" ")[0] for line in found] == [
        "portal.toml:2:",
        "portal.toml:3:",
        "portal.toml:5:",
    ]


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, with_key("hub", f'name = "{"x" * 10_000}"'))
    assert len(found) < 200


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"portal\.toml: cannot be read: No such file"):
        load(tmp_path / "portal.toml")


def test_a_file_that_is_not_text_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "portal.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not text in UTF-8"):
        load(file)


def test_settings_do_not_change(tmp_path: Path) -> None:
    settings = load(written(tmp_path, LDAP))
    with pytest.raises(ValidationError, match="frozen"):
        settings.hub.name = "other"
    with pytest.raises(TypeError):
        settings.session.folders["x"] = "/y"  # type: ignore[index]


def test_limits_by_group_are_read_in_the_files_order(tmp_path: Path) -> None:
    text = """
[limits.default]
max_gpus = 2
[limits.groups.students]
max_hours = 4
partitions = ["short", "sxm2"]
[limits.groups."domain users"]
account = "research"
"""
    limits = load(written(tmp_path, SMALLEST + text)).limits
    assert limits.default.max_gpus == 2
    assert limits.default.max_sessions is None
    assert list(limits.groups) == ["students", "domain users"]
    assert limits.groups["students"].max_hours == 4.0
    assert limits.groups["students"].partitions == ("short", "sxm2")
    assert limits.groups["domain users"].account == "research"


def test_a_mistake_in_a_groups_table_has_its_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, SMALLEST + '[limits.groups."a b"]\nmax_gpus = 1\nqos = 1\n')
    assert found.startswith("portal.toml:8: limits.groups.a b.qos")


TOOL = """\
[tools.x]
title = "X"
"""


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("command = []", "tools.x.command = []: must name a program"),
        (
            'command = ["x", "{socket}"]',
            'tools.x.command = ["x", "{socket}"]: has the placeholder {socket}; there are '
            "{unix_socket}, {port}, {base_url}",
        ),
        ('command = ["x"]', "tools.x = {...}: command must have {unix_socket}"),
        (
            'command = ["x"]\nlistens = "port"',
            "tools.x = {...}: port must be set, or command must have {port}",
        ),
        (
            'command = ["x", "{unix_socket}"]\nport = 5000',
            'tools.x = {...}: port needs listens = "port"',
        ),
        (
            'command = ["x", "{unix_socket}"]\nport = 5000\nlistens = "port"',
            'tools.x = {...}: {unix_socket} needs listens = "unix_socket"',
        ),
        (
            'command = ["x"]\nport = 80\nlistens = "port"',
            "tools.x.port = 80: must be at least 1024",
        ),
        (
            'command = ["x", "{unix_socket}"]\nnetwork = "none"',
            "tools.x.network = \"none\": must be 'own' or 'shared'",
        ),
        (
            'command = ["x", "{unix_socket}"]\nmodules = ["digits/6"]',
            "the modules of tool x need session.modules_init",
        ),
    ],
)
def test_a_tool_that_cannot_be_is_refused(tmp_path: Path, lines: str, problem: str) -> None:
    assert problem in " ".join(problems(tmp_path, SMALLEST + TOOL + lines + "\n"))


@pytest.mark.parametrize(
    ("lines", "is_own"),
    [
        ('command = ["x", "{unix_socket}"]', False),
        ('command = ["x", "{unix_socket}"]\nnetwork = "own"', True),
        ('command = ["x"]\nlistens = "port"\nport = 5000', True),
        ('command = ["x", "{port}"]\nlistens = "port"', True),
        ('command = ["x", "{port}"]\nlistens = "port"\nnetwork = "shared"', False),
    ],
)
def test_a_port_is_in_a_network_of_its_own_unless_it_is_said(
    tmp_path: Path, lines: str, is_own: bool
) -> None:
    settings = load(written(tmp_path, SMALLEST + TOOL + lines + "\n"))
    assert settings.tools["x"].has_own_network is is_own


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('title = "A"', "images.a = {...}: needs either path or address"),
        (
            'title = "A"\npath = "/a.sif"\naddress = "r.example/a:1"',
            "images.a = {...}: needs either path or address",
        ),
        ('title = "A"\naddress = "pytorch"', "'pytorch' is no image's name"),
        ('title = "A"\naddress = "r.example/a:1"', "address needs containers.cache"),
    ],
)
def test_an_image_is_at_one_place(tmp_path: Path, table: str, problem: str) -> None:
    containers = '[containers]\napptainer = "/usr/bin/apptainer"\n'
    found = problems(tmp_path, f"{SMALLEST}{containers}[containers.images.a]\n{table}\n")
    assert problem in "|".join(found)


def test_an_image_with_an_address_is_in_the_cache(tmp_path: Path) -> None:
    containers = '[containers]\napptainer = "/usr/bin/apptainer"\ncache = "/nas/images"\n'
    image = '[containers.images.a]\ntitle = "A"\naddress = "r.example/a:1"\n'
    file = tmp_path / "portal.toml"
    file.write_text(f"{SMALLEST}{containers}{image}")
    settings = load(file).containers
    assert settings.file_of(settings.images["a"]) == "/nas/images/by-name/r.example/a@1.sif"


@pytest.mark.parametrize(
    "good",
    [
        "{}",
        '{"authentication": {"ldap": {"servers": ["ldap://a"]}}}',
        '{"containers": {"images": {"tools": {"path": "/nas/tools.sif"}}}}',
    ],
)
def test_some_of_the_settings_are_good_without_the_others(good: str) -> None:
    check_part(good)


def test_all_that_is_wrong_with_some_of_the_settings_is_said() -> None:
    wrong = {
        "hub": {"name": "no name", "max_named_servers": "3"},
        "limits": {"everybody": {}, "default": {"max_gpu": 4}},
    }
    with pytest.raises(SettingsError) as caught:
        check_part(json.dumps(wrong))
    assert [line.split(":")[0] for line in caught.value.problems] == [
        'hub.max_named_servers = "3"',
        'hub.name = "no name"',
        "limits.default.max_gpu",
        "limits.everybody",
    ]
    assert "did you mean max_gpus?" in str(caught.value)
    with pytest.raises(SettingsError, match="is not JSON"):
        check_part("session: {}")
