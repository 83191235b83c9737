"""Findings: what a check of a database or a workspace came to."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Literal

import msgspec

Level = Literal["ok", "warn", "bad"]

_EXAMPLES = 5


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one check found: a sentence with figures, and what repair does about it.

    `ok`: as it must be. `warn`: it mends itself, or a person may want to look. `bad`: a promise is
    broken. `repair` is None where there is nothing that a repair could do.
    """

    check: str
    level: Level
    text: str
    repair: str | None = None
    examples: tuple[str, ...] = ()


def ok(check: str, text: str) -> Finding:
    """Returns that all is as it must be."""
    return Finding(check=check, level="ok", text=text)


def finding(
    check: str,
    level: Level,
    text: str,
    examples: Iterable[object] = (),
    *,
    repair: str | None = None,
) -> Finding:
    """Returns a finding with a few of its examples."""
    shown = tuple(map(str, islice(examples, _EXAMPLES)))
    return Finding(check=check, level=level, text=text, repair=repair, examples=shown)
