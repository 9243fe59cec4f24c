"""The names of the bases."""

from __future__ import annotations

from typing import Literal, get_args

BasisName = Literal["pure", "paper"]
"""What ``basis=`` may be: functions that are orthogonal on any support, or those of the paper."""

BASES: tuple[BasisName, ...] = get_args(BasisName)
"""Every name."""
