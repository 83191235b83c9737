"""What a language gives away about a sentence: `english.py` and `chinese.py` fill this in."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["who", "preference", "instruction", "decision", "plan", "fact"]


class Cues(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns of one language, each searched in a clause as it was said.

    `opener` is what a sentence may begin with before it says anything. A `question` or `small_talk`
    states nothing; nor does, at either end of a sentence, a `command` or what is `hollow` (about
    oneself or about what was just said, and saying nothing), unless it has a sense of its own.
    What a sentence does speaks for keeping it (`signs.py`): `standing` (an instruction that goes
    on holding), `remember`, `decision`, `correction`, `plan`, `preference`, `who` (who somebody
    is), an `anchor` (a name, a number, a place, a date), and `strong`, which a clause must hold to
    be kept out of a question. `personal` is the speaker about themselves or their own, what is
    `addressed` is said to somebody. `change` says that something holds no longer, `restating` that
    it was said before.

    `shared` names a project or a group, `alone` the speaker. `accepting` begins a turn that says
    yes to the one before it, `proposal` is what can be said yes to, `offer` asks for an order
    instead, `finding` is a cause that somebody found.
    """

    opener: re.Pattern[str]
    question: re.Pattern[str]
    small_talk: re.Pattern[str]
    command: re.Pattern[str]
    hollow: re.Pattern[str]
    standing: re.Pattern[str]
    remember: re.Pattern[str]
    decision: re.Pattern[str]
    correction: re.Pattern[str]
    plan: re.Pattern[str]
    preference: re.Pattern[str]
    who: re.Pattern[str]
    personal: re.Pattern[str]
    anchor: re.Pattern[str]
    addressed: re.Pattern[str]
    strong: re.Pattern[str]
    change: re.Pattern[str]
    restating: re.Pattern[str]
    shared: re.Pattern[str]
    alone: re.Pattern[str]
    accepting: re.Pattern[str]
    proposal: re.Pattern[str]
    offer: re.Pattern[str]
    finding: re.Pattern[str]
    shortest: int
