"""The site's shared cache of images, and the program that alone writes to it.

No user can write there: what is in it others will run. So a user's command asks, through sudo, for
this program, which runs as the cache's own account. It takes a name and a key on its standard
input and no arguments. It asks the registry itself what the name leads to, and takes names only of
the registries that the site shares; so all that a hostile user can do is to have it pull what
anybody could. What is in the cache is for everybody: a key that opens private images of its user
must not bring them here, so sites name none of the registries' private folders.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from dsportal.images import programs, site
from dsportal.images.errors import ImageError, KeyRefused
from dsportal.images.image_folder import ImageFolder, ImageRecord
from dsportal.images.key import Key
from dsportal.images.pull import Pull
from dsportal.images.reference import Reference, parse

_REFUSED_KEY = 3
_LONGEST = 50_000
_HOURS = 24.0


def ask(decided: site.Site, reference: Reference, key: Key | None) -> ImageRecord:
    """Have the cache's account bring an image; its words go to the user's terminal."""
    pair = None if key is None else [key.user, key.secret]
    order = json.dumps({"reference": str(reference), "key": pair})
    sudo = ["/usr/bin/sudo", "-n", "-u", decided.cache_account, "--", decided.cache_program]
    with subprocess.Popen(sudo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        said, _ = child.communicate(order, timeout=_HOURS * 3600)
    if child.returncode == 0:
        return ImageRecord(**json.loads(said))
    words = said.strip() or (
        "The shared cache could not be asked (sudo says why). Try --own, and tell an administrator"
    )
    raise KeyRefused(words) if child.returncode == _REFUSED_KEY else ImageError(words)


def main(file: Path) -> int:
    """Serve one order, as the cache's account."""
    os.umask(0o022)
    programs.end_like_ctrl_c()
    try:
        record = _served(site.load(file))
    except ImageError as error:
        sys.stdout.write(f"{error}\n")
        return _REFUSED_KEY if isinstance(error, KeyRefused) else 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(json.dumps(vars(record)))
    return 0


def _served(decided: site.Site) -> ImageRecord:
    reference, key = _ordered(sys.stdin.read(_LONGEST))
    if not reference.is_below(decided.shared):
        raise ImageError(f"This site does not share images of {reference.name}; use --own")
    image_folder = ImageFolder(Path(decided.cache))
    record = Pull(decided, image_folder, _say, decided.cache_gb).image(reference, key)
    try:
        image_folder.lead(reference.link, record)
    except OSError as error:
        raise ImageError(f"{image_folder.folder}: {error.strerror}") from error
    return record


def _ordered(text: str) -> tuple[Reference, Key | None]:
    try:
        order = json.loads(text)
        reference, pair = order["reference"], order["key"]
        if not isinstance(reference, str):
            raise TypeError("no text")
        key = None
        if pair is not None:
            user, secret = pair
            key = Key(str(user), str(secret))
    except (KeyError, TypeError, ValueError) as error:
        raise ImageError("The order is not one that this program knows") from error
    return parse(reference), key


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
