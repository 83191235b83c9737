"""What every table of the configuration has in common: no key that turnmark doesn't know."""

from __future__ import annotations

import msgspec


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of `config.toml`; a key that may be left out has a default."""
