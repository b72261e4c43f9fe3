"""Pack a part of dsportal into one file that runs by itself; print where it is.

Arguments: the folder dsportal/, the interpreter of the hosts, and the part, whose `command.main` is
run. The part must need nothing else. The same sources give the same bytes, so that an unchanged
program is not copied again.
"""

import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path

CACHE = Path(os.environ.get("PORTAL_CACHE", "/var/cache/data-scientist-portal"), "doctor")
MAIN = "import sys\nfrom dsportal.{part}.command import main\nsys.exit(main())\n"


def packed(package: Path, interpreter: str, part: str) -> bytes:
    """Return the program: a line for the kernel, and a zip that Python runs (zipapp's format)."""
    content = io.BytesIO(f"#!{interpreter} -I\n".encode())
    content.seek(0, io.SEEK_END)
    files = [package / "__init__.py", *sorted((package / part).rglob("*.py"))]
    texts = {str(file.relative_to(package.parent)): file.read_bytes() for file in files}
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"__main__.py": MAIN.format(part=part).encode(), **texts}.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return content.getvalue()


def main() -> None:
    """Write it under the name of its content."""
    program = packed(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    final = CACHE / f"{hashlib.sha256(program).hexdigest()[:12]}.pyz"
    CACHE.mkdir(parents=True, exist_ok=True)
    building = final.with_suffix(f".{os.getpid()}")
    building.write_bytes(program)
    building.replace(final)
    print(final)


main()
