"""Whether the machine, and so Slurm, knows somebody by the name that the hub has for them."""

import pwd

from dsportal.authentication.errors import Refused


def refuse_other_spelling(name: str) -> None:
    """Raise Refused where the machine writes a name differently.

    Jobs would belong to ``Jane.Doe`` and sessions to ``jane.doe``, and the hub would take the jobs
    for nobody's. It may ask a directory: call it in a thread.
    """
    try:
        spelling = pwd.getpwnam(name).pw_name
    except KeyError:
        # The first start will say so; the directory may know users before the machine does.
        return
    if spelling != name:
        raise Refused(f"this machine calls {name} {spelling}, with capitals")
