"""What a model is told before it is asked anything: where it is, how to reach it, for how long."""

from __future__ import annotations

from typing import Literal

import msgspec

ModelKind = Literal["openai", "anthropic", "command"]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One model, as a table of the configuration describes it.

    `table` is that table's name (`writer`, `writer.tidy`), for messages that say what to change.
    `base_url` empty means the API's own address. `api_key_env` names the variable or systemd
    credential that holds the key; empty means that a server of one's own wants none.
    `timeout_seconds` bounds one answer in all.
    """

    table: str
    kind: ModelKind
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    command: tuple[str, ...] = ()
    timeout_seconds: float = 120.0
