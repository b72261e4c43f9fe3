"""The module of an environment: what loads it in terminals, in jobs and for its kernel."""

from pathlib import Path

from dsportal.session.own_environments.records import EnvironmentRecord

# Tcl's, which Lmod and Environment Modules both read. Loading two environments in turn is told
# apart by the family: the second takes the first's place.
_TEXT = """\
#%Module1.0
# Made by `portal env create`.
module-whatis "Your own environment on {on}"
if {{[module-info mode load] && ![file owned {prefix}/bin]}} {{
    error {{{name} is stored in {place}, which does not exist on this node or is not yours}}
}}
family portal_environment
{loads}prepend-path PATH {prefix}/bin
setenv {variable} {prefix}
"""


def text(record: EnvironmentRecord, place: Path) -> str:
    """Write it. Names and the path have been checked: nothing in them means anything to Tcl."""
    loads = "".join(f"module load {module}\n" for module in record.on)
    return _TEXT.format(
        name=record.name,
        on=record.on_words,
        loads=loads,
        place=place,
        prefix=record.prefix(place),
        variable=record.variable,
    )
