"""The command ``exanova``: from a table and a model to a decomposition, a report and explanations of rows."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command with the arguments of this process, and end the process with its exit code."""
    try:
        from exanova.cli.entry import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print('error: the command needs typer; install it with: pip install "exanova[app]"', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))
