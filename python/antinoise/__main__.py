"""The command line: `antinoise`, or `python -m antinoise`."""

import signal
import sys

from ._antinoise import run_command


def main() -> int:
    """Runs the command that the process was started with, and gives its exit status."""
    # Python only notes Ctrl-C, to answer it between two instructions of its own, and here there are none. The
    # program ends by it, or stops after its step where it says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["antinoise", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
