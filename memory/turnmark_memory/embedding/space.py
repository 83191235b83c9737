"""One embedder's vectors, asked: what is near a question, and what a document becomes.

Needs NumPy, through `shortlist.py`; `meaning.py` imports it once there is an embedder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock

from turnmark_memory.dense import DocRef
from turnmark_memory.embedding.documents import RECIPE, Document
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.embedding.nearness import nearness
from turnmark_memory.embedding.shortlist import Shortlist, code_of, middle_of
from turnmark_memory.embedding.vector_file import GenerationRow, Made, VectorFile

_PROBES = (
    "Good morning, how are you today?",
    "The weather is nice and we went for a walk in the park.",
    "Please fix the failing test in the parser before you merge.",
    "I bought new shoes for my daughter last week.",
    "The server runs out of memory under load.",
    "She plays the violin and her brother paints.",
    "Dinner is at eight, the table is booked for four.",
    "The invoice was paid on the third of May.",
    "今天天气很好，我们去公园散步了。",
    "请在合并之前修好那个失败的测试。",
    "服务器在高负载下内存不足。",
    "她上周给女儿买了一双新鞋。",
    "今日は会議が三つあります。",
    "昨日、友達と映画を見ました。",
    "오늘 저녁에 친구를 만나기로 했어요.",
    "Mañana salimos temprano hacia la montaña.",
    "Wir haben gestern die neue Wohnung besichtigt.",
    "Le train arrive à midi.",
)
"""Texts about anything: their middle is what all texts have in common for an embedder, and says
nothing. Source: seen from there, instead of from zero, vectors alone find 64.7 % instead of 59.8 %
of LoCoMo's evidence in the first ten (two conversations), and unrelated texts fall from cosines of
0.78, beside 0.84 for answers, to 0.34 beside 0.53."""

_LOADED_AT_ONCE = 10_000


class Space:
    """The vectors of one generation with the embedder that made them.

    Every function blocks; they may be called from several threads.
    """

    def __init__(self, file: VectorFile, embedder: Embedder, generation: GenerationRow) -> None:
        self._file = file
        self._embedder = embedder
        self.generation = generation
        self._shortlist = Shortlist(file.numbers(generation.id), generation.centre)
        self._change = 0
        self._lock = Lock()

    @classmethod
    def begin(cls, file: VectorFile, embedder: Embedder) -> Space:
        """Returns the space of an embedder; a new one costs the embedding of a few probes.

        Raises:
            Unavailable: if the embedder can't be loaded, or the file can't be written.
        """
        found = file.generation(embedder.space, RECIPE)
        if found is None:
            centre = middle_of([embedder.passage(probe) for probe in _PROBES])
            found = file.begin(embedder.space, RECIPE, centre)
        return cls(file, embedder, found)

    def make(self, document: Document) -> Made:
        """Returns the vector of a document, not kept yet."""
        vector = self._embedder.passage(document.text)
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
        vector = self._embedder.query(query)
        named = self._file.slots_of(generation, also)
        with self._lock:
            self._load()
            near = dict(self._shortlist.nearest(vector, limit))
            slots = [slot for slot in named.values() if slot not in near]
            values = self._shortlist.cosines(vector, slots)
        cosines = {**near, **dict(zip(slots, values, strict=True))}
        refs = self._file.refs_at(generation, list(cosines))
        scale = self._embedder.scale
        return {ref: nearness(cosines[slot], scale) for slot, ref in refs.items()}

    def _load(self) -> None:
        while changed := self._file.changed_after(
            self.generation.id, self._change, _LOADED_AT_ONCE
        ):
            self._shortlist.add([slot for _, slot in changed])
            self._change = changed[-1][0]
