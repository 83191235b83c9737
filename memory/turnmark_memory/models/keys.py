"""Where an API's key comes from: a systemd credential, else a variable of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.writers.writer import WriterFailed


def key_name(settings: ModelSettings, default_name: str) -> str:
    """Returns the variable or credential that holds the key, empty where none is wanted.

    `default_name` is the variable that the API's own tools read; it counts only where no other
    address is configured, so that a key never goes to somebody else.
    """
    return settings.api_key_env or ("" if settings.base_url else default_name)


def api_key(settings: ModelSettings, default_name: str, environ: Mapping[str, str]) -> str:
    """Returns the key, empty where the server wants none; reads a file of some bytes.

    Raises:
        WriterFailed: if a key is named and missing, empty, unreadable, or no key at all.
    """
    name = key_name(settings, default_name)
    if not name:
        return ""
    key = (_credential(name, environ) or environ.get(name, "")).strip()
    if not key:
        raise WriterFailed(
            f"no API key: {name} is neither set where turnmark runs nor a systemd credential; "
            f"set it and restart, or correct {settings.table}.api_key_env",
            transport=True,
        )
    if not key.isascii() or not key.isprintable():
        raise WriterFailed(
            f"the API key in {name} holds what no key can (a line end, a letter that isn't ASCII); "
            "copy it again and restart",
            transport=True,
        )
    return key


def _credential(name: str, environ: Mapping[str, str]) -> str:
    directory = environ.get("CREDENTIALS_DIRECTORY", "")
    if not directory or "/" in name:
        return ""
    try:
        return (Path(directory) / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise WriterFailed(
            f"the systemd credential {name} can't be read ({type(error).__name__}); "
            "check LoadCredential in the unit",
            transport=True,
        ) from error
