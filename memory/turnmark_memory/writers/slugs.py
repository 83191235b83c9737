"""Makes a name a file name."""

from __future__ import annotations

import re
import unicodedata

# Long enough for a name, short enough for every file system once it is UTF-8.
_LONGEST_SLUG = 48
# Windows opens a device for these names, so no topic can have one.
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d")


def slug_of(name: str, *, longest: int = _LONGEST_SLUG) -> str:
    """Returns `name` as a file name: lower case letters and digits of any script, and dashes.

    "" where `name` has neither letters nor digits.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    signs = (sign if sign.isalnum() else "-" for sign in folded)
    slug = "-".join("".join(signs).replace("-", " ").split())[:longest].strip("-")
    return f"{slug}-" if _DEVICE.fullmatch(slug) else slug
