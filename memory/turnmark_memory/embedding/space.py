"""One embedder's vectors, asked: what is near a question, and what a document becomes.

Needs NumPy, through `shortlist.py`; `meaning.py` imports it once there is an embedder.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from hashlib import blake2b
from threading import Lock

from turnmark_memory.dense import DocRef
from turnmark_memory.embedding.documents import RECIPE, Document
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.embedding.frame import Floats, Frame
from turnmark_memory.embedding.nearness import nearness
from turnmark_memory.embedding.shortlist import Shortlist, code_of
from turnmark_memory.embedding.vector_file import GenerationRow, Made, VectorFile

_LOADED_AT_ONCE = 10_000

_REMEMBERED_QUESTIONS = 32
"""Questions whose vectors are kept, 1.5 KB each: a context and a recall of one turn ask the same,
and recall itself asks twice, for what is near and for what it found by words."""


class Space:
    """The vectors of one generation with the embedder that made them.

    Every function blocks; they may be called from several threads.
    """

    def __init__(self, file: VectorFile, embedder: Embedder, generation: GenerationRow) -> None:
        self._file = file
        self._embedder = embedder
        self.generation = generation
        self._shortlist = Shortlist(file.numbers(generation.id), generation.dimension)
        self._frame = Frame.from_bytes(generation.frame, generation.dimension)
        self._change = 0
        self._lock = Lock()
        self._asked: OrderedDict[bytes, Floats] = OrderedDict()

    @classmethod
    def begin(cls, file: VectorFile, embedder: Embedder) -> Space:
        """Returns the space of an embedder; a new one may cost the embedding of probes.

        Raises:
            Unavailable: if the embedder can't be loaded, or the file can't be written.
        """
        found = file.generation(embedder.space, RECIPE)
        if found is None:
            frame = embedder.frame or Frame.of(embedder).to_bytes()
            found = file.begin(embedder.space, RECIPE, embedder.dimension, frame)
        return cls(file, embedder, found)

    def make(self, document: Document) -> Made:
        """Returns the vector of a document, not kept yet."""
        vector = self._frame.middle(map(self._embedder.passage, document.views))
        return Made(ref=document.ref, digest=document.digest, code=code_of(vector))

    def load(self) -> None:
        """Brings the shortlist in step with the file: cheap but for the first time."""
        with self._lock:
            self._load()

    def scores(self, query: str, *, limit: int, also: Collection[DocRef]) -> Mapping[DocRef, float]:
        """Returns the nearness of the nearest documents and of `also`; see `dense.Dense`."""
        generation = self.generation.id
        if not self._file.changed_after(generation, 0, 1):
            return {}
        vector = self._vector(query)
        named = self._file.slots_of(generation, also)
        with self._lock:
            self._load()
            near = dict(self._shortlist.nearest(vector, limit)) if limit else {}
            cosines = self._shortlist.cosines(vector, list(named.values()))
        refs = self._file.refs_at(generation, list(near))
        scale = self._embedder.scale
        return {
            **{ref: nearness(near[slot], scale) for slot, ref in refs.items()},
            **{ref: nearness(one, scale) for ref, one in zip(named, cosines, strict=True)},
        }

    def _vector(self, query: str) -> Floats:
        """Returns a question's vector, as it is compared; the last ones are remembered.

        By digest, so that no words stay. The lock is not held for the embedding: two threads may
        embed the same question.
        """
        key = blake2b(query.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            found = self._asked.get(key)
        if found is None:
            found = self._frame.seen(self._embedder.query(query))
        with self._lock:
            self._asked[key] = found
            self._asked.move_to_end(key)
            if len(self._asked) > _REMEMBERED_QUESTIONS:
                self._asked.popitem(last=False)
        return found

    def _load(self) -> None:
        while changed := self._file.changed_after(
            self.generation.id, self._change, _LOADED_AT_ONCE
        ):
            self._shortlist.add([slot for _, slot in changed])
            self._change = changed[-1][0]
