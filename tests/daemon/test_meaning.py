"""Recall by meaning through a real daemon: without an embedder, and with the one of the extra."""

from __future__ import annotations

import time

import pytest

from daemon.served import serving
from turnmark_memory.embedding import e5

QUESTION = "What is the backend written in?"
SECONDS = 60
"""Far more than the model needs to load and to embed a few turns on a busy machine."""


def test_without_an_embedder_words_answer_and_meaning_says_what_to_install() -> None:
    """A hybrid search goes by words; one by meaning alone can't be answered."""
    with serving() as daemon, daemon.wire() as wire:
        wire.append("s", "I moved to Porto in May.")
        wire.call("memory.flush")
        assert wire.call("memory.recall", query="moved to Porto")["hits"]
        error = wire.error("memory.recall", query="moved to Porto", mode="dense")
        assert error["code"] == -32006
        assert "pip install 'turnmark[e5]'" in error["message"]
        assert wire.call("status")["embedder"]["state"] == "off"


@pytest.mark.soak  # it waits for a thread that leaves the processor to everybody else
@pytest.mark.skipif(e5.why_not() is not None, reason=f"{e5.why_not()}")
def test_embeds_in_the_background_and_answers_by_meaning() -> None:
    """What was written is found by meaning once the status says so, and after a start at once."""
    with serving('[recall]\nembedder = "e5"\n') as daemon:
        with daemon.wire() as wire:
            wire.append("s", "The backend service is written in Python.", "We fly at eight.")
            wire.call("memory.flush")
            until = time.monotonic() + SECONDS
            while (embedder := wire.call("status")["embedder"])["state"] != "current":
                assert time.monotonic() < until, embedder
            assert embedder["embedded"] == embedder["documents"] >= 2
            assert embedder["name"].startswith("multilingual-e5-small/")
            hits = wire.call("memory.recall", query=QUESTION, mode="dense")["hits"]
            assert "backend" in hits[0]["text"]
        daemon.stop()
        daemon.start()
        with daemon.wire() as wire:
            assert wire.call("memory.recall", query=QUESTION, mode="dense")["hits"]
