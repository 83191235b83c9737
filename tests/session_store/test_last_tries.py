"""What is shown of a writer's reason: never what it was given."""

from __future__ import annotations

import pytest

from turnmark_session_store.last_tries import without_quotes


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("no answer from api.example within 120 s", "no answer from api.example within 120 s"),
        ('rejected: "my key is 1234" is no\ntopic', "rejected: … is no topic"),
        ("topic 'people/ana moved' isn't known", "topic … isn't known"),
        ("不认识“我搬到杭州了”", "不认识…"),
        ("don't know what it's about", "don't know what it's about"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_leaves_out_what_a_reason_quotes(reason: str, shown: str) -> None:
    """On one line that ends; an apostrophe quotes nothing."""
    assert without_quotes(reason) == shown
