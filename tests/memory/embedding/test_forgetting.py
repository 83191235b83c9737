"""What is forgotten leaves the vectors too, whether or not there is an embedder."""

from __future__ import annotations

from pathlib import Path

from turnmark_memory.archive import Archive
from turnmark_memory.embedding.vector_file import Made
from turnmark_memory.index import Index
from turnmark_memory.shelf import Shelf
from turnmark_memory.workspace import Workspace


def test_a_shelf_forgets_vectors_of_turns_and_of_what_rested_on_them(tmp_path: Path) -> None:
    """By label and by block id; others stay."""
    workspace = Workspace.open(tmp_path / "memory")
    index = Index.open(tmp_path / "index.db")
    shelf = Shelf(workspace, Archive(workspace), index, len)
    generation = shelf.vectors.begin("m", 1, 64, bytes(256)).id
    refs = [("turn", "s-1"), ("turn", "s-2"), ("block", "b-1"), ("block", "b-2")]
    shelf.vectors.put(generation, [Made(ref=ref, digest=b"d", code=b"\7" * 64) for ref in refs])
    shelf.forget(["s-1"], ["b-1"])
    assert sorted(ref for _, ref in shelf.vectors.refs_after(generation, -1, 9)) == [
        ("block", "b-2"),
        ("turn", "s-2"),
    ]
    for closes in (shelf.vectors, shelf.bases, index, shelf.archive, workspace):
        closes.close()
