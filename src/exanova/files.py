"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from errno import EINVAL
from pathlib import Path

from exanova.errors import FileWriteError


def write_whole(path: str | os.PathLike[str], body: bytes) -> None:
    """Write a file beside its final place and move it there; a crash leaves the old file or the new one.

    Raises:
        FileWriteError: if the place cannot be written.
    """
    temporary: Path | None = None
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise OSError(EINVAL, "it is there and is no file")  # a device or a pipe would be replaced by a file
        # The name of the temporary file is short and its own: the target may use every character a name may have.
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
