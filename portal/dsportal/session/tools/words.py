"""Messages about a web tool that is not running. ``title``: what the site calls it."""


def no_tool(name: str) -> str:
    """Say that the site offers none of that name."""
    return f"There is no tool {name}."


def not_running(title: str) -> str:
    """Say to an open page that its tool has ended."""
    return f"{title} is not running. Open its page again to start it."


def not_started(title: str) -> str:
    """Say that it is not known why."""
    return f"{title} could not be started."


def stopped_while_starting(title: str) -> str:
    """Say that somebody stopped it."""
    return f"{title} was stopped while it was starting."


def silent(title: str, seconds: int) -> str:
    """Say that it never listened."""
    return f"{title} did not answer within {seconds} second{'' if seconds == 1 else 's'}."


def no_program(title: str, program: str, *modules: str) -> str:
    """Say that there is nothing to run, although these modules were loaded."""
    loaded = f" with {', '.join(modules)} loaded" if modules else ""
    return f"The program {program} of {title} was not found{loaded}. Tell the administrators."


def ended(title: str, exit_code: int | None) -> str:
    """Say how its program ended."""
    return f"{title} has ended by itself, with exit code {exit_code}."
