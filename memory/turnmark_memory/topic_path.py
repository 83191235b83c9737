"""The path of a topic, `people/dana`: a safe name for the file `topics/people/dana.md`."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from turnmark_events.errors import Refused

CORE: Final = "core"
UNNAMED_PERSON: Final = "people/user"
"""Where what a user says of themselves goes while nobody knows their name."""
NOTES: Final = "subjects/notes"
ROOTS: Final = ("people", "projects", "subjects")

_PARTS_LIMIT: Final = 3
_PART_LIMIT_CHARACTERS: Final = 80
# A file name has at most 255 bytes; `.md` and the suffix of a staged file need some of them.
_PART_LIMIT_BYTES: Final = 240
_HAN = re.compile("[\u3400-\u9fff]")
# Windows opens a device for these, with any extension; workspaces are synced between machines.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")


def topic_path(path: str) -> str:
    """Returns `path` in its one form: NFC, lower case, hyphens for spaces, without `.md`.

    Its file's path in the workspace, `topics/people/dana.md`, names it too.

    Letters and digits of any script are allowed, and `-`, `_`, `.` inside a name.

    Raises:
        Refused: if it is not `core` or one of `people/…`, `projects/…`, `subjects/…` with one or
            two safe names.
    """
    normal = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path.strip()).lower())
    name = normal.removesuffix(".md").removeprefix("topics/")
    parts = [re.sub(r"\s+", "-", part) for part in name.split("/")]
    if parts == [CORE]:
        return CORE
    if parts[0] not in ROOTS or not 1 < len(parts) <= _PARTS_LIMIT:
        raise Refused(_form(path))
    for part in parts[1:]:
        problem = _part_problem(part)
        if problem:
            raise Refused(f"the topic {path[:200]!r} can't be used: {problem}")
    return "/".join(parts)


def _form(path: str) -> str:
    return (
        f"the topic {path[:200]!r} can't be used: name it people/…, projects/… or subjects/…, "
        "with at most two names after that"
    )


def _part_problem(part: str) -> str | None:
    if not part:
        return "a name in it is empty"
    if len(part) > _PART_LIMIT_CHARACTERS or len(part.encode()) > _PART_LIMIT_BYTES:
        return f"a name has at most {_PART_LIMIT_CHARACTERS} characters"
    if not all(_is_allowed(character) for character in part):
        return "only letters, digits, `-`, `_` and `.` are allowed"
    if part[0] == "." or part[-1] == "." or ".." in part or unicodedata.combining(part[0]):
        return "a name neither begins nor ends with a dot"
    return "that is the name of a device" if _DEVICES.fullmatch(part) else None


def _is_allowed(character: str) -> bool:
    return character in "-_." or unicodedata.category(character)[0] in "LMN"


def topic_file(path: str) -> str:
    """Returns the file of topic `path`, relative to the workspace."""
    return f"topics/{path}.md"


def title_of(path: str) -> str:
    """Returns a title for a new topic: its last name, spaced and capitalised."""
    words = re.sub(r"[-_]+", " ", path.rsplit("/", 1)[-1]).strip() or path
    return " ".join(word[:1].upper() + word[1:] for word in words.split(" "))


def first_about(path: str, *, chinese: bool = False) -> str:
    """Returns what a new topic is about, in the script of its title, or in Chinese if asked to.

    It stands until a person or a model says it better: whoever picks topics by this line must see
    more than a name.
    """
    title, kind = title_of(path), path.split("/", 1)[0]
    chinese = chinese or _HAN.search(title) is not None
    if path == UNNAMED_PERSON:
        if chinese:
            return "用户是谁；偏好、决定和计划"
        return "who the user is; what the user prefers, decides and plans"
    if kind == "people":
        if chinese:
            return f"{title}是谁；偏好、决定和计划"
        return f"who {title} is; what {title} prefers, decides and plans"
    if kind == "projects":
        if chinese:
            return f"项目{title}：决定、计划和事实"
        return f"the project {title}; its decisions, plans and facts"
    if kind == "subjects" and path != NOTES:
        return f"{title}：决定、计划和事实" if chinese else f"{title}; decisions, plans and facts"
    return title
