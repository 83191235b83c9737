"""Names of files made from names that others give: safe, short, and apart on every file system."""

from __future__ import annotations

import hashlib
import re
import unicodedata

# File systems allow 255 bytes; `.jsonl`, a hash and temporary suffixes must fit beside the name.
NAME_LIMIT_BYTES = 200
# A topic's file only has `.md` beside its name.
TOPIC_LIMIT_BYTES = 240
# 48 bits: two of a million odd names share a suffix with a chance of one in 500.
_SUFFIX_HEX = 12
_SUFFIXED = re.compile(rf"~[0-9a-f]{{{_SUFFIX_HEX}}}$")
# Names that some systems give to devices, whatever their ending.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
# Characters with a meaning in links between topics or on some file system.
_NOT_IN_TOPICS = frozenset('\\:*?"<>|#^[]')


def safe_name(name: str) -> str:
    """Returns a file name for an arbitrary string: the string itself if it is harmless.

    Otherwise what is harmless of it, `~` and 12 hex digits of its hash. Two strings get two
    names, also where the file system ignores case or Unicode form; a name is at most
    `NAME_LIMIT_BYTES` long.
    """
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in folded(name))
    if kept == name and _is_harmless(name):
        return name
    raw = name.encode("utf-8", "surrogatepass")
    suffix = "~" + hashlib.blake2b(raw, digest_size=_SUFFIX_HEX // 2).hexdigest()
    kept = kept.lstrip(".-").encode()[: NAME_LIMIT_BYTES - len(suffix)].decode("utf-8", "ignore")
    return kept + suffix


def _is_harmless(name: str) -> bool:
    return (
        bool(name)
        and name[0] not in ".-"
        and name[-1] != "."
        and len(name.encode()) <= NAME_LIMIT_BYTES
        and not _SUFFIXED.search(name)
        and not _DEVICE.fullmatch(name)
    )


def is_topic_name(name: str) -> bool:
    """Tells whether one component of a topic (not empty, NFC) is safe and readable."""
    return (
        name[0] != "."
        and name == name.strip()
        and name[-1] != "."
        and name.isprintable()
        and not _NOT_IN_TOPICS.intersection(name)
        and len(name.encode()) <= TOPIC_LIMIT_BYTES
        and not _DEVICE.fullmatch(name.casefold())
    )


def folded(name: str) -> str:
    """Returns what twins have in common: names that differ in case or Unicode form only."""
    # Folding can denormalise and normalising can unfold; twice is stable.
    once = unicodedata.normalize("NFC", name.casefold())
    return unicodedata.normalize("NFC", once.casefold())
