"""Make the home folder of each user named, as /etc/skel has it; print the ones that were made.

Asks the machine's name service, so it fails while that does not know a user yet.
"""

import os
import pwd
import shutil
import sys
from pathlib import Path


def ensure_home(user: pwd.struct_passwd) -> None:
    """Copy the skeleton under another name and rename it, so that half a home is never used."""
    home = Path(user.pw_dir)
    if home.is_dir():
        return
    building = home.with_name(f".{home.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    shutil.copytree("/etc/skel", building)
    for path in (building, *building.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    building.chmod(0o700)
    building.rename(home)
    print(home)


try:
    for name in sys.argv[1:]:
        ensure_home(pwd.getpwnam(name))
except KeyError as error:
    sys.exit(f"this machine does not know the user: {error}")
