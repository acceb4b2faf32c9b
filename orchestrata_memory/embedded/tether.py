"""Becomes a server that goes when its parent goes: ``python -I -S tether.py PARENT COMMAND…``.

Run as a file, by itself, so that nothing else is imported. Asking the system from a fresh process
instead of between fork and exec is safe whatever threads the parent has. Where the system knows
no parent-death signal (not Linux) the server simply runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, then become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it went before we could ask
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
