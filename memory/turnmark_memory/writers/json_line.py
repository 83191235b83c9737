"""One JSON object on one line, from whose texts no line, speaker or role can be forged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

# Ends a line for some readers, or shows nothing or another order than there is.
_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
# Marks by which servers begin a speaker's turn; a tokenizer takes them for the real ones wherever
# they stand: <|im_start|>, <｜User｜>, <start_of_turn>, </s>, [INST], <<SYS>>.
_OPENING_MARK: Final = re.compile(r"<(?=[|｜<]|/?[A-Za-z_]{1,24}>)|\[(?=/?[A-Z_]{3,24}\])")


def json_line(fields: Mapping[str, Any]) -> str:
    """Returns `fields` as one line of JSON; letters of all scripts stay readable.

    What poses as structure of a prompt is escaped inside its string: it reads the same as JSON,
    and is nothing but text to a tokenizer.
    """
    line = json.dumps(fields, ensure_ascii=False, separators=(", ", ": "))
    return _OPENING_MARK.sub(_escaped, _UNSEEN.sub(_escaped, line))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _units(found[0]))


def _units(sign: str) -> list[int]:
    encoded = sign.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]
