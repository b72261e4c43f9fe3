"""The sentences of the options form: what a user holds, and why a request is refused."""

from datetime import timedelta

NO_PARTITION = "No partition of the cluster is open to you now; ask its administrators."
NO_SESSIONS = "You may not start sessions on this portal; ask its administrators."
LINK_NOTE = "This form was filled in for you. Nothing has been started."


def held(gpus: int, sessions: int, most: int) -> str:
    """Say what the user's sessions hold, and how many GPUs they may."""
    return f"{_you_hold(gpus, sessions, most)}."


def too_much_held(gpus: int, sessions: int, most: int) -> str:
    """Refuse GPUs beside those that other sessions hold."""
    return f"{_you_hold(gpus, sessions, most)}; stop one or {_choice(max(0, most - gpus))}."


def too_many_at_once(asked: int, most: int) -> str:
    """Refuse more GPUs than all sessions may hold together."""
    return f"{_you_asked_for(asked)}; you may hold {most} at once: {_choice(most)}."


def too_many_for_one_session(asked: int, most: int) -> str:
    """Refuse more GPUs than the site grants one session."""
    return f"{_you_asked_for(asked)}; you may have {most} in one session: {_choice(most)}."


def too_many_for_partition(
    asked: int, partition: str, most: int, gpu_type: str | None = None
) -> str:
    """Refuse more GPUs, of one type or of all, than a partition gives one session."""
    of_type = "" if gpu_type is None else f" of type {gpu_type}"
    return (
        f"{_you_asked_for(asked)}; "
        f"one session in partition {partition} can have at most {most}{of_type}."
    )


def too_many_sessions(sessions: int, most: int) -> str:
    """Refuse one more session."""
    return f"You have {_count(sessions, 'session')} and may have {most} at once; stop one first."


def too_long_for_partition(asked: timedelta, partition: str, most: timedelta) -> str:
    """Refuse more time than a partition gives."""
    return f"You asked for {in_hours(asked)}; partition {partition} allows at most {hours(most)}."


def too_long(asked: timedelta, most: timedelta) -> str:
    """Refuse more time than the site grants."""
    return (
        f"You asked for {in_hours(asked)}; your sessions may last {in_hours(most)}: "
        f"choose at most {hours(most)}."
    )


def closed_partition(name: str, *others: str) -> str:
    """Refuse a partition that is not among the user's."""
    return f"Partition {name} is not open to you. You can use: {', '.join(others)}."


def no_such_type(gpu_type: str, partition: str, *others: str) -> str:
    """Refuse a type of GPU that a partition does not have."""
    types = f"Its types are: {', '.join(others)}." if others else "Choose “Any”."
    return f"Partition {partition} has no GPUs of type {gpu_type}. {types}"


def no_such_image(name: str, *others: str) -> str:
    """Refuse an image that the site does not offer."""
    names = ", ".join(others) or "none"
    return f"Image {name} is not offered for sessions. Available: {names}."


def not_to_choose(what: str, name: str, *others: str) -> str:
    """Refuse an account, a QOS, a reservation or a node feature that is not the user's."""
    names = ", ".join(others) or "none"
    return f"{what} {name} is not open to you. You can use: {names}."


def no_reservation(partition: str) -> str:
    """Refuse a session without a reservation where Slurm demands one."""
    return f"Partition {partition} takes only sessions with a reservation: choose one."


def no_such_feature(feature: str, partition: str) -> str:
    """Refuse a node feature that no node of a partition has."""
    return f"No node of partition {partition} has the feature {feature}."


def not_chosen(what: str, name: str, unchosen: str) -> str:
    """Say of a link's account, QOS, reservation or feature that it is not offered."""
    instead = f" The form is set to “{unchosen}” instead." if unchosen else ""
    return f"{what} {name} is not offered to you.{instead}"


def unfit_image(title: str) -> str:
    """Refuse an image without what a session needs."""
    return (
        f"No session can run in {title}: jupyterhub-singleuser is not in the image. "
        "Choose another one, and tell the administrators."
    )


def partition_not_taken(asked: str, stands: str) -> str:
    """Say of a link's partition that it is not open to the user, and which one the form has."""
    return f"Partition {asked} is not open to you. The form is set to {stands} instead."


def type_not_taken(asked: str, partition: str) -> str:
    """Say of a link's type of GPU that the partition has none of it."""
    return (
        f"Partition {partition} has no GPUs of type {asked}. The form is set to any type instead."
    )


def gpus_not_taken(asked: int, partition: str, most: int, stands: int) -> str:
    """Say of a link's number of GPUs that it is too high, and what the form has."""
    return (
        f"{_count(asked, 'GPU')} {'is' if asked == 1 else 'are'} not available: you can have "
        f"{_at_most(most)} in partition {partition} now. "
        f"The form is set to {_count(stands, 'GPU') if stands else 'no GPU'} instead."
    )


def time_not_taken(asked: timedelta, partition: str, most: timedelta) -> str:
    """Say of a link's time that it is too long, and what the form has."""
    return (
        f"{in_hours(asked)} is too long: a session in partition {partition} can last "
        f"{in_hours(most)} at most. The form is set to {in_hours(most)} instead."
    )


def gpus_not_understood(asked: str, stands: int) -> str:
    """Say of a link's number of GPUs that it is none, and what the form has."""
    stands_now = _count(stands, "GPU") if stands else "no GPU"
    return f"{asked} is not a number of GPUs. The form is set to {stands_now} instead."


def time_not_understood(asked: str, stands: timedelta) -> str:
    """Say of a link's time that it is none, or too short, and what the form has."""
    return f"{asked} is not a valid session time. The form is set to {in_hours(stands)} instead."


def image_not_taken(asked: str) -> str:
    """Say of a link's image that it is not offered."""
    return f"Image {asked} is not offered. The form is set to the portal's session instead."


def hours(time: timedelta) -> str:
    """Return a time as hours for people: ``8``, ``0.5``."""
    # With six decimals the minutes can be told again.
    return f"{time / timedelta(hours=1):.6f}".rstrip("0").rstrip(".")


def in_hours(time: timedelta) -> str:
    """Return a time with its unit: ``8 hours``, ``1 hour``."""
    return f"{hours(time)} hour{'' if hours(time) == '1' else 's'}"


def _you_hold(gpus: int, sessions: int, most: int) -> str:
    held_now = f"{_count(gpus, 'GPU')} in {_count(sessions, 'session')}"
    return f"You hold {held_now} and may hold {most} at once"


def _you_asked_for(gpus: int) -> str:
    return f"You asked for {_count(gpus, 'GPU')}"


def _choice(most: int) -> str:
    return f"choose at most {most}" if most else "choose no GPU"


def _at_most(most: int) -> str:
    return f"at most {most}" if most else "none"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
