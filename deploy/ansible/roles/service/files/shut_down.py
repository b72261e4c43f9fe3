"""Tell the supervisor to end, with all services; run by supervisor's own Python.

The one argument is the folder with its socket, which needs no settings: those may be gone. Prints
something when there was one.
"""

import sys
from http.client import HTTPException
from pathlib import Path
from xmlrpc.client import ServerProxy

from supervisor.xmlrpc import SupervisorTransport


def main() -> None:
    """Tell it; where nobody listens there is none."""
    transport = SupervisorTransport(None, None, f"unix://{Path(sys.argv[1], 'supervisor.sock')}")
    try:
        ServerProxy("http://127.0.0.1", transport=transport).supervisor.shutdown()
    except (OSError, HTTPException):
        return
    print("shut down")


if __name__ == "__main__":
    main()
