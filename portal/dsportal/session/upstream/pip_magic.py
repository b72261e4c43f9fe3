"""``%pip install`` in a kernel whose packages are everybody's: says so, and what to do instead.

A file of ipykernel's configuration, as ``child_output.py`` is; it is read by the kernel's own
Python, 2.7 too, and needs nothing but IPython. Tried with IPython 8.37 and 9.18, whose
``PackagingMagics.pip`` runs pip, which then fails with "Permission denied" for some path.
IPython 5 (Python 2.7) has no such magic.
"""

import os
import re
import shlex
import sys
import sysconfig

try:
    from IPython.core.magics.packaging import PackagingMagics
except ImportError:
    PackagingMagics = None

# What leads pip to another folder than the kernel's own.
_ELSEWHERE = ("--user", "--target", "-t", "--prefix", "--root", "--dry-run")
_LISTS = ("-r", "--requirement")
# pip's other options whose value is the next word.
_WITH_A_VALUE = re.compile(
    "(-[cefiC]|--(constraint|editable|find-links|(extra-)?index-url|proxy|trusted-host|timeout|"
    "retries|cert|client-cert|cache-dir|log|progress-bar|upgrade-strategy|config-settings?|"
    "global-option|no-binary|only-binary|platform|python-version|implementation|abi|src|report|"
    "exists-action|use-feature|use-deprecated|root-user-action|keyring-provider))$"
)
_WORDS = """\
{what} cannot be installed here: this kernel's packages are the same for everybody.
An environment of your own, on top of them, takes any package:

    !portal env create {name} {on}{packages}

or open My Environments in JupyterLab's launcher. Then choose the kernel {name} at the top right of
this notebook. It is a module for your jobs, too: module load {name}"""


def environment_for(line, modules):
    # type: (str, list[str]) -> dict[str, object]
    """Return what an environment would be made with for what was asked of pip."""
    packages, lists = [], []
    words = iter(_words(line)[1:])
    for word in words:
        name, _, value = word.partition("=")
        if word in _LISTS:
            lists.append(next(words, "FILE"))
        elif name in _LISTS:
            lists.append(value)
        elif _WITH_A_VALUE.match(word):
            next(words, None)
        elif not word.startswith("-"):
            packages.append(word)
    on = [modules[-1]] if modules else []
    name = "my-" + (on[0].split("/")[0] if on else "python")
    return {"name": name, "on": on, "packages": packages, "lists": lists}


def _words(line):
    # type: (str) -> list[str]
    """Divide what pip is asked for as a shell does: of "einops >= 0.8" in quotes, it is one."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation mark without its other
        words = [word.strip("\"'") for word in line.split()]
    comments = [at for at, word in enumerate(words) if word.startswith("#")]
    return words[: comments[0]] if comments else words


def _quoted(word):
    # type: (str) -> str
    if re.match("[A-Za-z0-9._/~-]+$", word):
        return word
    return "'%s'" % word.replace("'", "'\"'\"'")  # noqa: UP031


def told(offered):
    # type: (dict[str, object]) -> str
    """Say it in words."""
    packages = list(offered["packages"])  # type: ignore[call-overload]
    on = "".join("--on %s " % module for module in offered["on"])  # type: ignore[attr-defined] # noqa: UP031
    lists = list(offered["lists"])  # type: ignore[call-overload]
    wanted = [_quoted(package) for package in packages]
    for one in lists:
        wanted += ["-r", _quoted(one)]
    what = ", ".join(packages) or "Packages"
    return _WORDS.format(
        what=what, name=offered["name"], on=on, packages=" ".join(wanted) or "PACKAGE"
    )


def is_for_everybody(line):
    # type: (str) -> bool
    """Say whether pip would install into a folder that the user cannot write."""
    words = _words(line)
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
