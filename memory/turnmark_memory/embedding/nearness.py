"""From cosines to recall's common measure, whatever the embedder."""

from __future__ import annotations

from turnmark_memory.embedding.embedder import Scale


def nearness(cosine: float, scale: Scale) -> float:
    """Returns 0 for what unrelated texts have, 0.5 where half are answers, 1 for the same text."""
    if cosine <= scale.answers:
        return 0.5 * max(0.0, cosine - scale.unrelated) / (scale.answers - scale.unrelated)
    return min(1.0, 0.5 + 0.5 * (cosine - scale.answers) / (scale.same - scale.answers))
