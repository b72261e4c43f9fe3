"""Small made-up pictures to be turned into shards: folders of noise, and some that are broken."""

import subprocess
from pathlib import Path

CLASSES, EACH = 3, 40
SOUND = CLASSES * EACH
HEIGHT, WIDTH = 60, 80
# RecordIO's magic number; its records are split where the data has it at a multiple of four.
MAGIC = b"\x0a\x23\xd7\xce"
MAKE = """
import sys
from pathlib import Path
import numpy as np
from PIL import Image

folder, classes, each, height, width = Path(sys.argv[1]), *map(int, sys.argv[2:])
random = np.random.default_rng(1)
for label in range(classes):
    (folder / f"class{label}").mkdir(parents=True)
    for number in range(each):
        pixels = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"class{label}" / f"{number}.jpg")
"""


def make(folder: Path, python: Path) -> None:
    """Write a folder for each class, and among them what is described in `spoil`."""
    sizes = map(str, (CLASSES, EACH, HEIGHT, WIDTH))
    subprocess.run([str(python), "-c", MAKE, str(folder), *sizes], check=True, timeout=60)
    spoil(folder)


def spoil(folder: Path) -> None:
    """Cut a picture in the middle, call a text a picture, comment pictures with RecordIO's mark."""
    whole = (folder / "class0" / "0.jpg").read_bytes()
    (folder / "class1" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "class2" / "text.jpg").write_text("a text")
    for path in folder.glob("*/1.jpg"):
        content = b"  " + MAGIC * 3 + b"text"  # behind 6 bytes: at a multiple of four
        comment = b"\xff\xfe" + (len(content) + 2).to_bytes(2, "big") + content
        encoded = path.read_bytes()
        path.write_bytes(encoded[:2] + comment + encoded[2:])
