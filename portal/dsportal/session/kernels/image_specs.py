"""Kernel specs of an image in a session's catalogue."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsportal.containers import contents
from dsportal.containers.contents import ImageKernel

PROVISIONER = "portal-images"
"""The provisioner's name among the entry points of ``jupyter_client.kernel_provisioners``."""
SEPARATOR = " · "
"""Between a kernel's name and its image's."""


@dataclass(frozen=True)
class CatalogueImage:
    """An image, and what is known of it."""

    name: str
    title: str
    path: Path
    is_own: bool = False
    kernels: tuple[ImageKernel, ...] = ()
    trouble: str = ""
    """Why it has no kernels, in words for the user."""

    def having(self, answer: str) -> "CatalogueImage":
        """Return it with the kernels that the image has answered to have."""
        found = contents.parsed(answer)
        if not found:
            words = f"{self.path} has neither ipykernel nor IRkernel: install one in the image."
            return self.with_trouble(words)
        return replace(self, kernels=found, trouble="")

    def with_trouble(self, words: str) -> "CatalogueImage":
        """Return it with what is wrong."""
        next_step = "" if self.is_own else " Tell the administrators."
        return replace(self, kernels=(), trouble=words + next_step)

    def specs(self) -> dict[str, dict[str, Any]]:
        """Return its kernels' specs; where there are none, one that says what is wrong."""
        if self.trouble:
            return {self.name: self._spec(["sh"], "python", "Cannot be used")}
        return {
            f"{self.name}-{kernel.language.lower()}": self._spec(
                kernel.argv, kernel.language, kernel.title
            )
            for kernel in self.kernels
        }

    def _spec(self, argv: list[str], language: str, title: str) -> dict[str, Any]:
        return {
            "argv": argv,
            "display_name": f"{title}{SEPARATOR}{self.title}",
            "language": language,
            "metadata": {
                "debugger": language == "python" and not self.trouble,
                "kernel_provisioner": {
                    "provisioner_name": PROVISIONER,
                    "config": {"image": self.name},
                },
            },
        }
