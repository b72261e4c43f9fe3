"""The documentation's pages, for tests that follow them."""

import re
from pathlib import Path


def blocks(page: Path, *languages: str) -> list[str]:
    """Return a page's blocks of these languages, without their indentation."""
    kind = "|".join(languages)
    found = re.findall(rf"^( *)```(?:{kind})\n(.*?)^ *```$", page.read_text("utf-8"), re.M | re.S)
    return [re.sub(rf"(?m)^{indent}", "", text) for indent, text in found]
