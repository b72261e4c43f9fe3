"""The Unix account of a login: whether it is fit for a session.

It may ask a directory: call it in a thread.
"""

import pwd
from contextlib import suppress

from dsportal.authentication.errors import Refused


def refuse_unfit(name: str, minimum_uid: int) -> None:
    """Raise Refused where the machine writes a name differently, or has it for itself.

    Jobs would belong to ``Jane.Doe`` and sessions to ``jane.doe``, and the hub would take the jobs
    for nobody's; so of two names with one number, the one that the number stands for. ``root`` and
    the accounts of services are nobody's at all.
    """
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        # The first start will say so; the directory may know users before the machine does.
        return
    if account.pw_name != name:
        raise Refused(f"this machine calls {name} {account.pw_name}, with capitals")
    if account.pw_uid < minimum_uid:
        raise Refused(f"{name} has the number {account.pw_uid}, below minimum_uid = {minimum_uid}")
    with suppress(KeyError):
        if (owner := pwd.getpwuid(account.pw_uid).pw_name) != name:
            raise Refused(f"{name} has the number {account.pw_uid} of {owner}")
