"""Labels and block ids: the same everywhere, longer or another on a clash."""

from __future__ import annotations

from hashlib import blake2b

from turnmark_memory.labels import block_id_of, free_block_id, is_block_id, is_label, label_of


def test_label_is_a_prefix_of_the_digest_of_the_key() -> None:
    """The digest is over namespace, NUL and id; a longer label begins with the shorter one."""
    digest = blake2b("claude-code\x00甲-1".encode(), digest_size=32).hexdigest()
    assert label_of("claude-code", "甲-1") == f"s-{digest[:12]}"
    assert label_of("claude-code", "甲-1", 13) == f"s-{digest[:13]}"


def test_label_tells_namespaces_apart() -> None:
    """Moving a character from the namespace to the id gives another label."""
    assert label_of("ab", "c") != label_of("a", "bc")


def test_block_id_depends_on_each_part() -> None:
    """Equal parts give equal ids, and where a part ends matters."""
    assert block_id_of("x", "0") == block_id_of("x", "0")
    assert block_id_of("x", "0") != block_id_of("x0")
    assert is_block_id(block_id_of("x", "0"))


def test_free_block_id_avoids_what_is_taken() -> None:
    """Each clash derives another id, always the same one."""
    first = free_block_id(set[str]().__contains__, "x")
    second = free_block_id({first}.__contains__, "x")
    third = free_block_id({first, second}.__contains__, "x")
    assert len({first, second, third}) == 3
    assert second == free_block_id({first}.__contains__, "x")


def test_forms_are_told_apart() -> None:
    """A label and a block id have their own letters, lower case and enough digits."""
    assert is_label("s-8a9128075e1b")
    assert not any(is_label(name) for name in ("s-8a9128075e1", "b-8a9128075e1b", "s-8A9128075E1B"))
    assert not any(is_block_id(name) for name in ("b-af3dee4", "^b-af3dee4f", "b-af3dee4f\n"))
