"""Turns on their way into memory: read from the store as evidence, and placed for a reader."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from turnmark_memory.labels import label_of
from turnmark_memory.model import Evidence
from turnmark_session_store.masking import mask_secrets
from turnmark_session_store.queries import rows_of
from turnmark_session_store.times import to_datetime

_EVIDENCE = """
SELECT turn.id, namespace.name, turn.key, session.name, session.agent, session.project, role,
    speaker_id, speaker_name, time_ms, text, tokens
FROM json_each(?) AS wanted JOIN turn ON turn.id = wanted.value
    JOIN namespace ON namespace.id = turn.namespace JOIN session ON session.id = turn.session
    JOIN turn_words ON turn_words.turn = turn.id
ORDER BY turn.id
"""

_BEFORE = """
WITH RECURSIVE walk (id, steps) AS (
    SELECT predecessor, 1 FROM turn WHERE id = :turn AND predecessor IS NOT NULL
    UNION ALL
    SELECT predecessor, steps + 1 FROM walk JOIN turn USING (id)
    WHERE predecessor IS NOT NULL AND steps < :steps
)
SELECT namespace.name, turn.key FROM walk JOIN turn USING (id)
    JOIN namespace ON namespace.id = turn.namespace
WHERE recordable ORDER BY steps
"""


def refs_before(db: apsw.Connection, turn: int, steps: int) -> list[tuple[str, str]]:
    """Returns (namespace, id) of the recordable turns up to `steps` before `turn`, newest first."""
    return rows_of(db, _BEFORE, {"turn": turn, "steps": steps})


def load_evidence(db: apsw.Connection, turns: Sequence[int], *, mask: bool) -> list[Evidence]:
    """Returns the turns that still have words, oldest first, with labels of the usual length.

    `mask` masks secrets here, where the store keeps them (`mask = "exits"`).
    """
    rows = rows_of(db, _EVIDENCE, ("[" + ",".join(map(str, turns)) + "]",))
    found: list[Evidence] = []
    for key, namespace, turn, session, agent, project, role, who, name, at_ms, text, tokens in rows:
        words = text.decode("utf-8", "replace")
        found.append(
            Evidence(
                key=key,
                namespace=namespace,
                id=turn,
                label=label_of(namespace, turn),
                session=session,
                agent=agent,
                project=project,
                role=role,
                speaker_id=who,
                speaker_name=name,
                time=to_datetime(at_ms),
                text=mask_secrets(words)[0] if mask else words,
                tokens=tokens,
            )
        )
    return found
