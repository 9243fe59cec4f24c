"""Atomic writing of files."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from errno import EINVAL
from pathlib import Path

from exanova.argument_checks import check_path
from exanova.errors import FileWriteError


def write_whole(path: str | os.PathLike[str], body: bytes) -> None:
    """Write a temporary file in the same folder and rename it; after a crash either the old or the new file exists.

    Raises:
        FileWriteError: if the file cannot be written.
    """
    check_path(path)
    temporary: Path | None = None
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise OSError(EINVAL, "it exists and is not a file")  # renaming would replace a device or a pipe
        # The temporary file has a short name of its own: the target's name may already have the maximum length.
        temporary = Path(path).with_name(f".exanova-{os.getpid()}-{secrets.token_hex(4)}.part")
        with open(temporary, "xb") as handle:
            handle.write(body)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError, ValueError):
                temporary.unlink()
        if isinstance(error, OSError | ValueError):  # ValueError: no name at all, or one with a null byte
            raise FileWriteError(
                f"{os.fspath(path)!r} cannot be written ({getattr(error, 'strerror', None) or error}); "
                "give the path of a file in a folder that exists and may be written."
            ) from error
        raise
