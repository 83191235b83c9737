"""A person and the program of opencode, at random, on one database."""

from __future__ import annotations

import random
from collections.abc import Iterator

from session_store.transcripts.opencode_program import Opencode
from turnmark_session_store.queries import rows_of


class Doings:
    """Does at random what a person and the program can do; `texts` are never said twice."""

    def __init__(self, program: Opencode, chance: random.Random) -> None:
        self.program = program
        self.random = chance
        self.sessions = [program.open("s0")]
        self.answers: dict[str, str] = {}
        self.number = 0

    def do(self) -> Iterator[None]:
        """Does one thing; yields where it has moments in between."""
        session = self.random.choice(self.sessions)
        one = self.random.choice(
            [
                *[self._prompt, self._prompt, self._answer, self._answer, self._stream],
                *[self._revert, self._unrevert, self._fork, self._compact],
                *[self._spawn, self._begin, self._piece, self._piece],
            ]
        )
        yield from one(session)

    def _text(self) -> str:
        self.number += 1
        return f"{self.random.choice(('words', '的话'))} {self.number}"

    def _marked(self, session: str) -> bool:
        sql = "SELECT revert FROM session WHERE id = ? AND revert IS NOT NULL"
        return bool(rows_of(self.program.db, sql, (session,)))

    def _prompt(self, session: str) -> Iterator[None]:
        asked = self.program.prompt(session)
        for _ in range(self.random.randint(1, 2)):
            yield
            self.program.part(asked, type="text", text=self._text())

    def _begin(self, session: str) -> Iterator[None]:
        if session in self.answers or self._marked(session):
            return
        told = self.program.begin(session, role="assistant")
        yield
        self.answers[session] = told
        self.program.part(told, type="text", text="")

    def _stream(self, session: str) -> Iterator[None]:
        told = self.answers.get(session)
        if told is None:
            return
        parts = self.program.parts(told)
        self.program.stream(parts[-1], text=self._text())
        yield

    def _piece(self, session: str) -> Iterator[None]:
        told = self.answers.get(session)
        if told is not None:
            end = {"start": 1, "end": 2}
            self.program.stream(self.program.parts(told)[-1], text=self._text(), time=end)
            yield
            self.program.part(told, type="text", text="", time={"start": 3})

    def _answer(self, session: str) -> Iterator[None]:
        if session not in self.answers:
            yield from self._begin(session)
        told = self.answers.pop(session, None)
        if told is not None:
            end = {"start": 3, "end": 4}
            self.program.stream(self.program.parts(told)[-1], text=self._text(), time=end)
            yield
            self.program.finish(told)

    def _revert(self, session: str) -> Iterator[None]:
        if session in self.answers:  # the program is busy
            return
        keys = [key for key, _, data in self.program.messages(session) if data["role"] == "user"]
        if keys:
            self.program.revert(session, self.random.choice(keys))
            yield

    def _unrevert(self, session: str) -> Iterator[None]:
        if self._marked(session):
            self.program.unrevert(session)
            yield

    def _fork(self, session: str) -> Iterator[None]:
        if session in self.answers:
            return
        keys = [key for key, *_ in self.program.messages(session)]
        cut = self.random.choice([None, *keys])
        self.sessions.append(self.program.fork(session, f"s{self.number}f", before=cut))
        self.number += 1
        yield

    def _compact(self, session: str) -> Iterator[None]:
        if session not in self.answers and not self._marked(session):
            self.program.compact(session, self._text())
            yield

    def _spawn(self, session: str) -> Iterator[None]:
        if session in self.answers or self._marked(session):
            return
        told = self.program.begin(session, role="assistant")
        if self.random.random() < 0.5:
            self.program.part(told, type="text", text=self._text())
        child = self.program.open(f"s{self.number}c", parent=session)
        self.number += 1
        yield
        task = self._text()
        self.program.call(told, child, task)
        yield
        self.program.prompt(child, task)
        yield
        self.program.answer(child, self._text())
        yield
        self.program.finish(told)

    def end(self) -> None:
        """Lets every answer be complete."""
        for told in self.answers.values():
            self.program.finish(told)
