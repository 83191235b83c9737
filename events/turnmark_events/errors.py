"""The root of the project's errors: facts that a caller can act on, each with a stable kind."""

from __future__ import annotations

from typing import Any, ClassVar


class TurnmarkError(Exception):
    """An error whose `kind` is stable and whose message says what is wrong and what to do.

    `facts` travel to the client as the `data` of the answer, beside `kind`; they hold ids and
    numbers, never the text of a turn.
    """

    kind: ClassVar[str] = "internal"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, Any] = facts


class NotFound(TurnmarkError):
    """Something that was named does not exist here."""

    kind = "not_found"


class Conflict(TurnmarkError):
    """The same identity was given again with other content."""

    kind = "conflict"


class Stale(TurnmarkError):
    """An expectation about the current state no longer holds; `facts` name what is there."""

    kind = "stale"


class Busy(TurnmarkError):
    """Another holder has it now; trying again later can succeed."""

    kind = "busy"


class Refused(TurnmarkError):
    """The request is understood and will not be done; the message says why."""

    kind = "refused"


class Unavailable(TurnmarkError):
    """The world failed (disk, writer, endpoint); nothing was changed."""

    kind = "unavailable"


class Gone(TurnmarkError):
    """What was asked for has been dropped; `facts["oldest"]` is the oldest still kept."""

    kind = "gone"


class Forgotten(TurnmarkError):
    """What was asked for was forgotten on request and stays so."""

    kind = "forgotten"
