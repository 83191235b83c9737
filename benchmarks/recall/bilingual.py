"""Reads the bilingual set: conversations with the questions under the turns that answer them.

The format is described in `bilingual/README.md`. A malformed line is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast, get_args

from recall.corpus import Corpus, Half, Question, Turn

DIRECTORY = Path(__file__).parent / "bilingual"
UNANSWERABLE = "unanswerable.txt"

_TURN = re.compile(r"(?P<speaker>[^:?]+): (?P<text>\S.*)")
_QUESTION = re.compile(r"(?P<mark>[xc]?)\? (?P<text>\S.*)")
_MARKED_GROUPS = {"x": "cross", "c": "context"}
_BETWEEN_TURNS = timedelta(minutes=1)


class Malformed(ValueError):
    """A line of the set does not follow the format."""

    def __init__(self, path: Path, line: int, wrong: str) -> None:
        super().__init__(f"{path.name}, line {line}: {wrong}")


def parts(directory: Path = DIRECTORY) -> list[str]:
    """Returns the parts of the set: what stands before the language in the names of its files."""
    return sorted({_part(path) for path in directory.glob("*.txt")})


def read(directory: Path = DIRECTORY, *, only: Collection[str] = ()) -> Corpus:
    """Returns the set as one corpus: all of it, or some parts.

    Raises:
        Malformed: if a line does not follow the format.
    """
    turns: list[Turn] = []
    questions: list[Question] = []
    for path in sorted(directory.glob("*.txt")):
        if only and _part(path) not in only:
            continue
        if path.name == UNANSWERABLE:
            questions += _unanswerable(path)
            continue
        for one in _conversations(path):
            if isinstance(one, Turn):
                turns.append(one)
            else:
                questions.append(one)
    turns.sort(key=lambda turn: turn.time)
    return Corpus(name="bilingual", turns=tuple(turns), questions=tuple(questions))


def _part(path: Path) -> str:
    return path.stem.partition("-")[0]


def language_of(text: str) -> str:
    """Returns `ja`, `ko`, `zh` or `en`, by script: one Chinese sign makes a question Chinese."""
    if re.search("[\u3040-\u30ff]", text):
        return "ja"
    if re.search("[\uac00-\ud7af]", text):
        return "ko"
    return "zh" if re.search("[\u4e00-\u9fff]", text) else "en"


def _conversations(path: Path) -> Iterator[Turn | Question]:
    session, turn, position, asked = "", "", 0, 0
    half: Half = "learn"
    project: str | None = None
    time = datetime.min.replace(tzinfo=UTC)
    for number, line in _lines(path):
        if line.startswith("== "):
            name, half_name, at, project_name = _header(path, number, line, 4)
            session, half = name, _half(path, number, half_name)
            project = None if project_name == "-" else project_name
            time, position = datetime.fromisoformat(at).replace(tzinfo=UTC), 0
        elif found := _QUESTION.fullmatch(line):
            if not position:
                raise Malformed(path, number, "a question stands under the turn that answers it")
            asked += 1
            text = found["text"]
            group = _MARKED_GROUPS.get(found["mark"]) or language_of(text)
            yield Question(
                id=f"{turn}?{asked}", text=text, group=group, half=half, evidence=(turn,)
            )
        elif found := _TURN.fullmatch(line):
            position, asked = position + 1, 0
            turn, time = f"{session}/{position}", time + _BETWEEN_TURNS
            speaker = None if found["speaker"] == "assistant" else found["speaker"]
            yield Turn(
                id=turn,
                session=session,
                project=project,
                time=time,
                role="user" if speaker else "assistant",
                speaker=speaker,
                text=found["text"],
            )
        else:
            raise Malformed(path, number, "neither a session, a turn nor a question")


def _unanswerable(path: Path) -> Iterator[Question]:
    group, asked = "", 0
    half: Half = "learn"
    for number, line in _lines(path):
        if line.startswith("== "):
            language, half_name, kind = _header(path, number, line, 3)
            group, half = f"{language} {kind}", _half(path, number, half_name)
            asked = 0
        elif found := _QUESTION.fullmatch(line):
            asked += 1
            name = f"{group.replace(' ', '-')}-{half}?{asked}"
            yield Question(id=name, text=found["text"], group=group, half=half)
        else:
            raise Malformed(path, number, "neither a heading nor a question")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield number, line


def _header(path: Path, number: int, line: str, parts: int) -> list[str]:
    found = [part.strip() for part in line.removeprefix("== ").split(" | ")]
    if len(found) != parts:
        raise Malformed(path, number, f"a heading has {parts} parts between bars")
    return found


def _half(path: Path, number: int, name: str) -> Half:
    if name not in get_args(Half):
        raise Malformed(path, number, f"a half is learn or report, not {name}")
    return cast("Half", name)
