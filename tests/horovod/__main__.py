"""``python -m tests.horovod FOLDER PYTHON``: make it there, for this interpreter's PyTorch."""

import sys
from pathlib import Path

from tests.horovod import build, modulefile

folder = Path(sys.argv[1]).resolve()
build(folder, Path(sys.argv[2]).absolute())
sys.stdout.write(modulefile(folder))
