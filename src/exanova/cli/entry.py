"""One run of the command: every error is one line on standard error and an exit code.

0    success
2    error; standard error says what is wrong and what to do
3    compare --fail-above: something changed by more than the limit
130  interrupted
141  the reader of standard output closed it, as `head` does; nothing is printed
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer

from exanova.cli.app import app
from exanova.cli.option_names import with_options
from exanova.cli.text import one_line
from exanova.errors import ExanovaError

DONE, WRONG, INTERRUPTED, UNREAD = 0, 2, 130, 141


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; returns the exit code.

    >>> run(["--version"])  # doctest: +ELLIPSIS
    exanova ...
    0
    """
    _never_fail_to_encode()
    try:
        with _warnings_on_one_line():
            code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = UNREAD
        _forget_output()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        code = WRONG
        _forget_output()
        if "--debug" in arguments:
            traceback.print_exc()
        _say(f"error: {_message(error)}")
    if code == INTERRUPTED:
        _say("interrupted")
    return code


def _invoke(arguments: Sequence[str]) -> int:
    """Parse and run; without arguments, show the help."""
    try:
        code = app(list(arguments) or ["--help"], prog_name="exanova", standalone_mode=False, obj=tuple(arguments))
    except SystemExit as end:
        if isinstance(end.__context__, OSError) and end.__context__.errno == errno.EPIPE:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from end  # typer ends with 1
        code = end.code
    return code if isinstance(code, int) else DONE


def _message(error: Exception) -> str:
    """The message of an error, on one line."""
    usage = getattr(error, "format_message", None)  # usage errors; typer versions define them in different places
    if usage is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "exanova"
        return one_line(f"{usage().rstrip('.')}. See {command} --help.")
    if isinstance(error, ExanovaError):
        return one_line(with_options(error.message))
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename or 'standard output'}: {error.strerror}")
    if isinstance(error, MemoryError):
        return "out of memory; use a smaller --max-order or fewer rows"
    return one_line(f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)")


@contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    """Show each warning for users once, and no warnings for programmers."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"warning: {one_line(with_options(message.args[0] if isinstance(message, Warning) else message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield


def _never_fail_to_encode() -> None:
    """Write characters that the terminal cannot show as escape sequences."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _forget_output() -> None:
    """Drop output that can no longer be written, or the end of the process would report it again."""
    with suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _say(line: str) -> None:
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
