"""Claiming: batches that were planned are taken up, one per conversation, or refused."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from turnmark_events.errors import Busy
from turnmark_memory.planning import Planned
from turnmark_session_store.batches import claim
from turnmark_session_store.transaction import Transaction

_REFUSALS_LIMIT = 5
"""Looks in a row whose claims were refused: a conversation moves on meanwhile, but not always."""


class Claims:
    """Takes claims in one worker's name; `writer_of` names the writer of a batch."""

    def __init__(self, workspace: int, writer_of: Callable[[Planned], str]) -> None:
        self._workspace = workspace
        self._writer_of = writer_of
        self._owner = f"worker-{secrets.token_hex(4)}"
        self._refusals = 0

    @property
    def are_stuck(self) -> bool:
        """Tells whether claims were refused so often in a row that looking again is no use."""
        return self._refusals >= _REFUSALS_LIMIT

    def take(
        self, tx: Transaction, planned: Sequence[Planned]
    ) -> tuple[list[tuple[Planned, int]], list[Planned]]:
        """Claims batches; returns those claimed, and those whose conversation moved on."""
        claimed: list[tuple[Planned, int]] = []
        refused: list[Planned] = []
        for one in planned:
            try:
                batch = claim(
                    tx,
                    self._workspace,
                    one.turns,
                    session=one.live.session,
                    branch=one.live.branch,
                    tip=one.live.tip,
                    owner=self._owner,
                    writer=self._writer_of(one),
                )
            except Busy:
                refused.append(one)
            else:
                claimed.append((one, batch))
        self._refusals = self._refusals + 1 if refused else 0
        return claimed, refused
