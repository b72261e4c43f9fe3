"""Checks of environment modules and of the kernels in them, run as nobody, as users' rights are."""

import textwrap

from dsportal.doctor.expected import ExpectedKernel, Modules
from dsportal.doctor.finding import Finding, failed, ok
from dsportal.doctor.programs import ProgramAnswer, ask

# What a session does before it starts a kernel: $1 defines `module`; up to -- are modules.
_LOAD = (
    'source "$1" || exit 1; shift; while [ "$1" != -- ]; do module load "$1" || exit 1; shift; '
    'done; shift; exec "$@"'
)
# What says that a program can be a kernel.
_IS_KERNEL = {
    "python": ("-c", "import ipykernel; print(ipykernel.__version__)"),
    "R": ("--no-echo", "--no-restore", "-e", "cat(as.character(packageVersion('IRkernel')))"),
}


def _in_modules(
    modules: Modules, names: tuple[str, ...], *argv: str, environment: dict[str, str]
) -> ProgramAnswer:
    variables = {"MODULEPATH": ":".join(modules.paths), "HOME": "/"} | environment
    shell = ("/bin/bash", "--noprofile", "--norc", "-c", _LOAD, "doctor")
    command = (*shell, modules.init, *names, "--", *argv)
    return ask(*command, seconds=25, environment=variables, as_nobody=True)


def module(name: str, modules: Modules) -> Finding:
    """Load a module."""
    answer = _in_modules(modules, (name,), "true", environment={})
    if answer.status == 0:
        return ok("can be loaded")
    step = "look at `module spider`, and at session.module_paths in portal.toml"
    return failed(_words(answer), step)


def kernel(expected: ExpectedKernel, modules: Modules | None) -> Finding:
    """Start a kernel's interpreter in its modules, and import what makes it a kernel."""
    argv = (expected.interpreter, *_IS_KERNEL[expected.language])
    variables = dict(expected.environment or {})
    if expected.modules and modules is None:
        return failed("needs modules, and there are none here", "set session.modules_init")
    if expected.modules and modules is not None:
        answer = _in_modules(modules, expected.modules, *argv, environment=variables)
    else:
        answer = ask(*argv, seconds=25, environment=variables, as_nobody=True)
    if answer.status == 0:
        return ok(f"{expected.language} with its kernel {answer.said.strip().splitlines()[-1]}")
    step = f"see [kernels.{expected.name}] in portal.toml: its modules and its interpreter"
    return failed(_words(answer), step)


def _words(answer: ProgramAnswer) -> str:
    """Take a module system's first words: the reason, and the module's name, are among them."""
    words = " ".join(answer.complained.split())
    return textwrap.shorten(words, 160, placeholder=" ...") or answer.last_words
