"""Kernel specs in an image.

The image itself is asked, so its answer is anybody's text: only what fits is taken.
"""

import re
from dataclasses import dataclass

# Each line of the answer begins with this; an image may greet with whatever else.
_LINE = "portal-image"
_ASK = f"""\
for python in python3 python; do
  version=$("$python" -s -c 'import importlib.util, platform
assert importlib.util.find_spec("ipykernel")
print(platform.python_version())' </dev/null 2>/dev/null) || continue
  echo "{_LINE} kernel $python $version"
  break
done
version=$(R --vanilla --no-echo -e 'invisible(loadNamespace("IRkernel"))' \
  -e 'cat(as.character(getRversion()))' </dev/null 2>/dev/null) && echo "{_LINE} kernel R $version"
echo "{_LINE} end"
"""
COMMAND = ("/bin/sh", "-c", _ASK)
"""What an image is asked with."""
_KERNEL = re.compile(_LINE + r" kernel (python3|python|R) (\d{1,3}\.\d{1,3})(?:\.\S{1,20})?")
MOST_BYTES = 4096
"""An answer is not longer."""
_ARGUMENTS = {
    "python": ("-m", "ipykernel_launcher", "-f", "{connection_file}"),
    "R": ("--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"),
}


@dataclass(frozen=True)
class ImageKernel:
    """A kernel in an image."""

    program: str
    version: str

    @property
    def language(self) -> str:
        """``python`` or ``R``."""
        return "R" if self.program == "R" else "python"

    @property
    def title(self) -> str:
        """What people call it, such as ``Python 3.11``."""
        return f"{self.language.capitalize()} {self.version}"

    @property
    def argv(self) -> list[str]:
        """What starts it inside the image, as in a ``kernel.json``."""
        return [self.program, *_ARGUMENTS[self.language]]


def parsed(answer: str) -> tuple[ImageKernel, ...] | None:
    """Read what an image answered to `COMMAND`; ``None`` where it did not answer to the end."""
    lines = answer.splitlines()
    if f"{_LINE} end" not in lines:
        return None
    found = (_KERNEL.fullmatch(line) for line in lines)
    kernels = {match[1]: ImageKernel(match[1], match[2]) for match in found if match}
    return tuple(kernels.values())
