"""``%pip install`` in a kernel whose packages are everybody's: says so, and what to do instead.

A file of ipykernel's configuration, as ``child_output.py`` is; it is read by the kernel's own
Python, 2.7 too, and needs nothing but IPython. Tried with IPython 8.37 and 9.18, whose
``PackagingMagics.pip`` runs pip, which then fails with "Permission denied" for some path.
IPython 5 (Python 2.7) has no such magic.
"""

import os
import sys
import sysconfig

try:
    from IPython.core.magics.packaging import PackagingMagics
except ImportError:
    PackagingMagics = None

# What leads pip to another folder than the kernel's own.
_ELSEWHERE = ("--user", "--target", "-t", "--prefix", "--root", "--dry-run")
_WORDS = """\
{what} cannot be installed here: this kernel's packages are the same for everybody.
An environment of your own, on top of them, takes any package:

    !portal env create {name} {on}{packages}

or open My Environments in JupyterLab's launcher. Then choose the kernel {name} at the top right of
this notebook. It is a module for your jobs, too: module load {name}"""


def environment_for(line, modules):
    # type: (str, list[str]) -> dict[str, object]
    """Return what an environment would be made with for what was asked of pip."""
    words = line.split()[1:]
    packages = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "-e"):
            skip = True
        elif not word.startswith("-"):
            packages.append(word.strip("\"'"))
    on = [modules[-1]] if modules else []
    name = "my-" + (on[0].split("/")[0] if on else "python")
    return {"name": name, "on": on, "packages": packages}


def told(offered):
    # type: (dict[str, object]) -> str
    """Say it in words."""
    packages = list(offered["packages"])  # type: ignore[call-overload]
    on = "".join("--on %s " % module for module in offered["on"])  # type: ignore[attr-defined] # noqa: UP031
    quoted = " ".join(
        package
        if package.replace("-", "").replace(".", "").replace("_", "").isalnum()
        else "'%s'" % package  # noqa: UP031
        for package in packages
    )
    what = ", ".join(packages) or "Packages"
    return _WORDS.format(what=what, name=offered["name"], on=on, packages=quoted or "PACKAGE")


def is_for_everybody(line):
    # type: (str) -> bool
    """Say whether pip would install into a folder that the user cannot write."""
    words = line.split()
    if words[:1] != ["install"]:
        return False
    if any(word.split("=")[0] in _ELSEWHERE for word in words):
        return False
    return not os.access(sysconfig.get_paths()["purelib"], os.W_OK)


def _pip(self, line):
    # type: (PackagingMagics, str) -> object
    """Run pip in this kernel's environment, or say why that cannot be."""
    if not os.environ.get("PORTAL_ENVIRONMENTS") or not is_for_everybody(line):
        return _original(self, line)
    modules = [one for one in os.environ.get("LOADEDMODULES", "").split(":") if one]
    sys.stdout.write(told(environment_for(line, modules)) + "\n")
    return None


if PackagingMagics is not None:
    _original = PackagingMagics.pip
    PackagingMagics.pip = _pip
