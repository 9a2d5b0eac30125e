"""The command line: `antinoise`, or `python -m antinoise`."""

import signal
import sys

from ._antinoise import run_command


def main() -> int:
    """Runs the command line of this process and returns its exit status."""
    # Python handles Ctrl-C between its own instructions, and none run during the command. With the default
    # handler Ctrl-C ends the program, or stops it after the current step where a command says so.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["antinoise", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
