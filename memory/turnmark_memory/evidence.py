"""Turns on their way into memory: read from the store as evidence, and placed for a reader."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
from msgspec import json

from turnmark_memory.labels import label_of
from turnmark_memory.model import Evidence
from turnmark_session_store.masking import mask_secrets
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.times import to_datetime

_STEPS_UP = 100
"""Turns of tools and of the runtime that may lie between a turn and what it was said after."""

_EVIDENCE = """
SELECT turn.id, namespace.name, turn.key, session.name, session.agent, session.project, role,
    speaker_id, speaker_name, time_ms, text, tokens, (
        WITH RECURSIVE up (id, steps) AS (
            SELECT turn.predecessor, 1
            UNION ALL
            SELECT other.predecessor, steps + 1 FROM up JOIN turn AS other USING (id)
            WHERE NOT other.recordable AND steps < :steps
        )
        SELECT json_array(named.name, said.key)
        FROM up JOIN turn AS said USING (id) JOIN namespace AS named ON named.id = said.namespace
        WHERE said.recordable LIMIT 1
    ), session_words.title
FROM json_each(:turns) AS wanted JOIN turn ON turn.id = wanted.value
    JOIN namespace ON namespace.id = turn.namespace JOIN session ON session.id = turn.session
    JOIN turn_words ON turn_words.turn = turn.id
    LEFT JOIN session_words ON session_words.session = session.id
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

    `mask` masks secrets here, where the store keeps them (`mask = "exits"`). Titles are masked
    always: the store keeps them as they are.
    """
    bound = {"turns": json_keys(turns), "steps": _STEPS_UP}
    rows = rows_of(db, _EVIDENCE, bound)
    found: list[Evidence] = []
    for row in rows:
        key, namespace, turn, session, agent, project, role, who, name, at_ms = row[:10]
        text, tokens, before, title = row[10:]
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
                after="" if before is None else label_of(*json.decode(before)),
                title=mask_secrets(title)[0] if title else None,
            )
        )
    return found
