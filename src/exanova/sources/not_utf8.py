"""Where a file is not UTF-8: the line, the byte, and the text before it."""

from __future__ import annotations

from typing import Any

BLOCK = 2**20
"""Bytes that are checked together."""

BEFORE = 20
"""Characters of the line that are shown before the byte."""


def where_not_utf8(stream: Any) -> str:
    r"""The first bytes of a binary stream that are not UTF-8, in words; empty if all are.

    >>> import io
    >>> where_not_utf8(io.BytesIO("name,city\nJosé,Paris\n".encode("latin-1")))
    "line 2 has the byte 0xe9 after 'Jos'"
    """
    line, start = 1, b""
    while True:
        block = stream.read(BLOCK)
        rest = start + bytes(block)
        whole = rest if not block else rest[: rest.rfind(b"\n") + 1]
        try:
            whole.decode("utf-8")
        except UnicodeDecodeError as error:
            before = whole[: error.start]
            own = before[before.rfind(b"\n") + 1 :].decode("utf-8")
            after = f" after {own[-BEFORE:]!r}" if own else ""
            number = line + before.count(b"\n")
            return f"line {number:,} has the byte 0x{whole[error.start]:02x}{after}"
        if not block:
            return ""
        line, start = line + whole.count(b"\n"), rest[len(whole) :]
