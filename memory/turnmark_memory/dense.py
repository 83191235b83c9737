"""The seam between recall and an embedder: how near documents are to a question in meaning.

Recall works without one. With one, what is near joins the candidates, and nearness counts in
their order beside words and structure; what it says is fused by *score*, never by rank.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from turnmark_memory.index_schema import Kind

DocRef = tuple[Kind, str]
"""A document: its kind, and its label (a turn) or its block id."""


class Dense(Protocol):
    """An embedder with the vectors of one workspace."""

    async def scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> Mapping[DocRef, float]:
        """Returns how near the `limit` nearest documents are, and each of `also` that is known.

        Asked again for the same question it costs no embedding; with a `limit` of 0 no search.
        A score is a cosine brought to a common measure, whatever the embedder: 0 is what
        unrelated texts have, 1 what the same text has, 0.5 where a document answers the question
        as often as not. Documents without a vector yet are left out; ones that went out of the
        index may still be in. Can be cancelled.

        Raises:
            Unavailable: if the embedder can't be used; its message says what to install.
        """
        ...
