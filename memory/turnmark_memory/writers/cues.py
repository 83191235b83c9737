"""What a language gives away about a sentence: `english.py` and `chinese.py` fill this in."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Kind = Literal["preference", "decision", "plan", "fact"]


class Cues(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns of one language, each searched in a sentence as it was said.

    `question`, `small_talk` and `command` speak against keeping a sentence; `standing` (an
    instruction that goes on holding), `remember` and `decision` overrule `command`. `plan`,
    `preference` and `personal` (the speaker about themselves or their own) are kept as they are;
    `hollow` is personal and says nothing. `claim` with `anchor` (a verb, and a name, number or
    date) is a fact about something else. `strong` is what a clause must hold to be kept out of a
    question. `shared` names a project or a group, `alone` the speaker.
    """

    question: re.Pattern[str]
    small_talk: re.Pattern[str]
    command: re.Pattern[str]
    standing: re.Pattern[str]
    remember: re.Pattern[str]
    decision: re.Pattern[str]
    plan: re.Pattern[str]
    preference: re.Pattern[str]
    personal: re.Pattern[str]
    hollow: re.Pattern[str]
    claim: re.Pattern[str]
    anchor: re.Pattern[str]
    strong: re.Pattern[str]
    shared: re.Pattern[str]
    alone: re.Pattern[str]
    confirmation: re.Pattern[str]
    person: re.Pattern[str]
    shortest: int
