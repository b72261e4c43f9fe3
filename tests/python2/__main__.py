"""``python -m tests.python2 FOLDER``: make it there."""

import sys
from pathlib import Path

from tests.python2 import unpack

unpack(Path(sys.argv[1]).resolve())
