"""The command, and `python -m uncanny`. Imports come last: an interrupt while they go on is one line, too."""

import sys


def main() -> None:
    """Run the command line and exit."""
    try:
        from uncanny.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
