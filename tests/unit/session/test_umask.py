from pathlib import Path

import pytest

from dsportal.session.umask import users_umask

DEBIAN = """\
# The umask of logins; UMASK 077 would keep all to oneself.
UMASK\t\t022
HOME_MODE\t0700
"""


@pytest.mark.parametrize(
    ("chosen", "gecos", "login_defs", "umask"),
    [
        pytest.param("", "User One,,,", DEBIAN, 0o022, id="the node's"),
        pytest.param("", "", "UMASK 027\n", 0o027, id="the node's, with blanks"),
        pytest.param("", "", "", 0o022, id="neither says"),
        pytest.param("", "", "#UMASK 077\n", 0o022, id="a comment says nothing"),
        pytest.param("", "", "UMASK private\n", 0o022, id="no number says nothing"),
        pytest.param("", "User One,,,,umask=0007", DEBIAN, 0o007, id="the account's own"),
        pytest.param("", "User One,room,pri=5,umask=077", DEBIAN, 0o077, id="among others"),
        pytest.param("", "no-umask=077", DEBIAN, 0o022, id="not at the end of a word"),
        pytest.param("0002", "umask=077", DEBIAN, 0o002, id="the site's word counts"),
        pytest.param("", "umask=0777", DEBIAN, 0o077, id="never the owner's own rights"),
    ],
)
def test_what_others_may_not_do_is_what_a_login_says(
    tmp_path: Path, chosen: str, gecos: str, login_defs: str, umask: int
) -> None:
    file = tmp_path / "login.defs"
    file.write_text(login_defs)
    assert users_umask(chosen, gecos, file) == umask


def test_a_node_without_the_file_has_the_usual(tmp_path: Path) -> None:
    assert users_umask("", "", tmp_path / "login.defs") == 0o022
