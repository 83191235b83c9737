"""The turns of one rollout: their ids, their order, and what a later record took back.

A turn's id is the same wherever the turn stands: in a fork's copy of it, in an archived file, in a
second reading. It is, in this order:

- the id of its item, where Codex made it, which is a UUID;
- the exchange's UUID and the id that the model's provider gave: some count those from 1, or draw
  them from a million;
- the exchange's UUID, the role and a hash of the text, for the old events, which have no id;
- a hash over the family of forks, the turn before, the role and the text, for files from before
  exchanges had ids of their own.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from turnmark_session_store.identity import content_digest, hashed_id
from turnmark_session_store.transcripts.codex.files import RolledBack, Rollout
from turnmark_session_store.transcripts.codex.records import Said
from turnmark_session_store.transcripts.ids import hash_of, is_uuid

_HASH_BYTES = 8


@dataclass(kw_only=True, eq=False, slots=True)
class ChainTurn:
    """One turn in the order of its file.

    `before` is the turn that stood last when it was said, None where the file begins with it.
    `rolled_back` is the line of the record that took it back.
    """

    id: str
    said: Said
    before: str | None
    rolled_back: int | None = None


class Chain:
    """The turns of a rollout as far as it was read, each once, in the order of its lines."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.entries = list(rollout.entries)
        self.turns: list[ChainTurn] = []
        self._texts: dict[str, set[str]] = {}
        self._numbers: dict[str, int] = {}
        self._standing: list[ChainTurn] = []
        family = f"codex:{rollout.family}" if rollout.metas else "codex"
        for entry in self.entries:
            if isinstance(entry, RolledBack):
                self._roll_back(entry)
            elif rollout.counts(entry):
                self._add(entry, family)

    def standing_at(self, line: int | None = None) -> ChainTurn | None:
        """Returns the last turn that stood before a line, or at the end; None if there was none."""
        for turn in reversed(self.turns):
            if line is not None and turn.said.line >= line:
                continue
            if turn.rolled_back is None or (line is not None and turn.rolled_back >= line):
                return turn
        return None

    def _add(self, said: Said, family: str) -> None:
        before = self._standing[-1].id if self._standing else None
        key = self._key(said, before, family)
        if key is None:
            return
        turn = ChainTurn(id=key, said=said, before=before)
        self.turns.append(turn)
        self._standing.append(turn)

    def _key(self, said: Said, before: str | None, family: str) -> str | None:
        """Returns a turn's id, None if it is the second line of one."""
        made_here = is_uuid(said.item)
        if made_here or (said.item is not None and is_uuid(said.turn)):
            own = said.item if made_here else f"{said.turn}.{said.item}"
            assert own is not None  # noqa: S101  a UUID is a string
            if said.text in self._texts.get(own, ()) or (made_here and own in self._texts):
                return None
        elif is_uuid(said.turn):
            own = f"{said.turn}.{said.role}-{_hash(said.text)}"
        else:
            digest = content_digest(said.role, "turn", None, said.text)
            return hashed_id(namespace=family, predecessor=before, origin="", digest=digest)
        texts = self._texts.setdefault(own, set())
        number = self._numbers.get(own, 0) + 1
        self._numbers[own] = number
        texts.add(said.text)
        return own if number == 1 else f"{own}.{number}"

    def _roll_back(self, record: RolledBack) -> None:
        prompts = [at for at, turn in enumerate(self._standing) if turn.said.role == "user"]
        if not prompts:
            return
        cut = prompts[max(0, len(prompts) - record.exchanges)]
        for turn in self._standing[cut:]:
            turn.rolled_back = record.line
        del self._standing[cut:]


def _hash(text: str) -> str:
    return hash_of(unicodedata.normalize("NFC", text), size_bytes=_HASH_BYTES)
