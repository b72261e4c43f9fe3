from pathlib import Path

from jupyter_server_proxy.config import ServerProcess, make_handlers

from portal.session.tensorboard import NAME, ROUTES, server_process

FOLDER = Path("/tmp/session-x")  # noqa: S108 - a name, nothing is made


def process() -> ServerProcess:
    given = server_process("/opt/tensorboard/bin/python", FOLDER, Path("/home/{odd}"))
    return ServerProcess(name=NAME, **given)


def test_it_listens_on_a_socket_in_the_users_folder() -> None:
    assert process().unix_socket == "/tmp/session-x/tensorboard.sock"  # noqa: S108
    assert process().port == 0


def test_the_command_names_its_own_interpreter_and_the_public_address() -> None:
    command = [
        word.format(unix_socket="/s", base_url="/user/user1/", port=0) for word in process().command
    ]
    assert command[:2] == ["/opt/tensorboard/bin/python", "-I"]
    assert Path(command[2]).name == "tensorboard_server.py"
    assert command[3:] == [
        "--socket=/s",
        "--path-prefix=/user/user1/tensorboard",
        "--logdir=/home/{odd}/logs",
    ]


def test_the_launcher_has_a_card_that_opens_a_tab() -> None:
    card = process().launcher_entry
    assert (card.title, card.path_info) == ("TensorBoard", "tensorboard/")
    assert Path(card.icon_path).is_file()
    assert process().new_browser_tab


def test_it_has_half_a_minute_and_more_to_start() -> None:
    assert process().timeout >= 30


def test_no_route_leads_to_a_port() -> None:
    patterns = [route[0] for route in make_handlers("/user/user1/", [process()])]
    assert patterns == ["/user/user1/tensorboard/(.*)", "/user/user1/tensorboard"]
    assert not any("/proxy" in f"/{route}" for route in ROUTES)
