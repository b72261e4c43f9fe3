"""``python -I -m dsportal.session.own_environments``: ``portal env`` itself."""

import sys

from dsportal.session.own_environments.command import main

if __name__ == "__main__":
    sys.exit(main())
