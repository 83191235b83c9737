"""The vectors of one workspace: a SQLite file that says whose they are, and one file of numbers.

Derived: missing, damaged or of another schema, they begin empty and are made again. One vector a
document, with a digest of the words that it was made from. Vectors of one embedder and recipe are a
*generation* with a file of numbers of its own, one row of int8 for each *slot*; while the next
generation is made, the one before it serves.

A row is on the disk before the commit that names its slot, and is zeroed after the commit that
frees it; the slots that are free at a start are zeroed again. Nothing here needs NumPy or an
embedder, so that what was forgotten is erased without them too. Every function blocks and may be
called from any thread.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import cast

import apsw
import msgspec
import structlog
from msgspec import json

from turnmark_events.errors import Unavailable
from turnmark_memory.dense import DocRef
from turnmark_memory.index_file import Database, remove
from turnmark_memory.index_schema import Kind

log = structlog.get_logger(__name__)

FILE_NAME = "vectors.db"
NUMBERS_PATTERN = "vectors-*.i8"

_APPLICATION_ID = 0x746D7663
"""`tmvc`: keeps a database of another program from being taken for vectors and replaced."""
_SCHEMA_VERSION = 1
_BUSY_MS = 5_000

_PRAGMAS = (
    "PRAGMA journal_mode = wal",
    "PRAGMA synchronous = normal",  # derived: a power cut may cost the last vectors
    "PRAGMA secure_delete = on",
    "PRAGMA journal_size_limit = 16777216",
)
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SCHEMA_VERSION};
CREATE TABLE generation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    recipe INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    frame BLOB NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0,
    slots INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (space, recipe)
);
CREATE TABLE vector (
    generation INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    digest BLOB NOT NULL,
    change INTEGER NOT NULL,
    PRIMARY KEY (generation, slot)
) WITHOUT ROWID;
CREATE UNIQUE INDEX vector_by_ref ON vector (generation, kind, ref);
CREATE UNIQUE INDEX vector_by_change ON vector (generation, change);
CREATE TABLE free (
    generation INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    PRIMARY KEY (generation, slot)
) WITHOUT ROWID;
"""


class GenerationRow(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one embedder's space; `frame` says how they were looked at (`frame.py`).

    `dimension` is how many numbers a vector has, `slots` one more than the highest slot ever used.
    """

    id: int
    space: str
    recipe: int
    dimension: int
    frame: bytes
    complete: bool
    slots: int


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A vector to keep: of which document and words, and its numbers as int8."""

    ref: DocRef
    digest: bytes
    code: bytes


class DamagedVectors(Unavailable):
    """The file can't be read; `discard` it, and nothing is lost but the time to embed again."""


class VectorFile:
    """Keeps vectors: `begin` a generation, `put` what is made."""

    def __init__(self, path: Path) -> None:
        """Takes a place; nothing is opened or made there before it is needed."""
        self.path = path
        self._lock = RLock()
        self._db: Database | None = None

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def numbers(self, generation: int) -> Path:
        """Returns the file that holds a generation's rows, slot after slot."""
        return self.path.with_name(NUMBERS_PATTERN.replace("*", str(generation)))

    def begin(self, space: str, recipe: int, dimension: int, frame: bytes) -> GenerationRow:
        """Returns the generation of a space and recipe, a new one if there is none yet."""
        with self._using() as db, db:
            sql = """INSERT OR IGNORE INTO generation (space, recipe, dimension, frame)
                     VALUES (?, ?, ?, ?)"""
            db.execute(sql, (space, recipe, dimension, frame))
        found = self.generation(space, recipe)
        if found is None:
            raise LookupError(space)
        return found

    def generation(self, space: str, recipe: int) -> GenerationRow | None:
        """Returns the generation of a space and recipe."""
        return next((g for g in self.generations() if (g.space, g.recipe) == (space, recipe)), None)

    def generations(self) -> list[GenerationRow]:
        """Returns the generations, the newest first; none where there is no file."""
        if self._is_absent():
            return []
        names = ("id", "space", "recipe", "dimension", "frame", "complete", "slots")
        sql = f"SELECT {', '.join(names)} FROM generation ORDER BY id DESC"
        with self._using() as db:
            rows = db.execute(sql).fetchall()
        return [
            msgspec.convert(dict(zip(names, row, strict=True)), GenerationRow, strict=False)
            for row in rows
        ]

    def complete(self, generation: int) -> None:
        """Marks a generation as whole, and removes those before it."""
        with self._using() as db:
            with db:
                db.execute("UPDATE generation SET complete = 1 WHERE id = ?", (generation,))
                for table, column in (("vector", "generation"), ("free", "generation")):
                    db.execute(f"DELETE FROM {table} WHERE {column} <> ?", (generation,))
                db.execute("DELETE FROM generation WHERE id <> ?", (generation,))
            for path in self.path.parent.glob(NUMBERS_PATTERN):
                if path != self.numbers(generation):
                    path.unlink(missing_ok=True)

    def put(self, generation: int, made: Sequence[Made]) -> None:
        """Keeps vectors in place of those of the same documents; durable when it returns."""
        with self._using() as db:
            with db:
                freed = _free(db, generation, [one.ref for one in made])
                is_new = _slots_used(db, generation) == 0
                slots = _take_slots(db, generation, len(made), besides=freed)
                rows = {s: one.code for s, one in zip(slots, made, strict=True)}
                self._write(generation, rows, create=is_new)
                for slot, one in zip(slots, made, strict=True):
                    _insert(db, generation, slot, one)
            self._zero(db, generation, freed)

    def digests(self, generation: int, kind: Kind, refs: Sequence[str]) -> dict[str, bytes]:
        """Returns, of those of `refs` that have a vector, what it was made from."""
        sql = """SELECT ref, digest FROM json_each(?3) AS here CROSS JOIN vector
                 ON generation = ?1 AND kind = ?2 AND ref = here.value"""
        with self._using() as db:
            rows = db.execute(sql, (generation, kind, _listed(refs))).fetchall()
        return {str(ref): bytes(digest) for ref, digest in rows}

    def count(self, generation: int | None = None) -> int:
        """Returns how many vectors a generation has, or all have together."""
        if self._is_absent():
            return 0
        sql = "SELECT count(*) FROM vector WHERE ?1 IS NULL OR generation = ?1"
        with self._using() as db:
            found = db.execute(sql, (generation,)).fetchone()
        return 0 if found is None else int(found[0])

    def changed_after(self, generation: int, change: int, limit: int) -> list[tuple[int, int]]:
        """Returns up to `limit` (change, slot) after a change, in their order."""
        sql = """SELECT change, slot FROM vector WHERE generation = ? AND change > ?
                 ORDER BY change LIMIT ?"""
        with self._using() as db:
            rows = db.execute(sql, (generation, change, limit)).fetchall()
        return [(int(at), int(slot)) for at, slot in rows]

    def refs_at(self, generation: int, slots: Sequence[int]) -> dict[int, DocRef]:
        """Returns whose vectors are in these slots; those that are free are left out."""
        sql = """SELECT slot, kind, ref FROM json_each(?2) AS here CROSS JOIN vector
                 ON generation = ?1 AND slot = here.value"""
        with self._using() as db:
            rows = db.execute(sql, (generation, _listed(slots))).fetchall()
        return {int(slot): (kind, str(ref)) for slot, kind, ref in rows}

    def slots_of(self, generation: int, docs: Iterable[DocRef]) -> dict[DocRef, int]:
        """Returns the slots of these documents; those without a vector are left out."""
        with self._using() as db:
            return dict(_slots_of(db, generation, docs))

    def refs_after(self, generation: int, slot: int, limit: int) -> list[tuple[int, DocRef]]:
        """Returns up to `limit` slots after one, with the documents they stand for."""
        sql = """SELECT slot, kind, ref FROM vector WHERE generation = ? AND slot > ?
                 ORDER BY slot LIMIT ?"""
        with self._using() as db:
            rows = db.execute(sql, (generation, slot, limit)).fetchall()
        return [(int(at), (kind, str(ref))) for at, kind, ref in rows]

    def erase(self, docs: Iterable[DocRef]) -> None:
        """Erases the vectors of documents: their numbers, and their names in log and free pages.

        Where they can't be erased one by one all of it goes: it is derived.
        """
        given = list(docs)
        if not given or self._is_absent():
            return
        try:
            for generation in self.generations():
                with self._using() as db:
                    with db:
                        freed = _free(db, generation.id, given)
                    self._zero(db, generation.id, freed)
            with self._using() as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except Unavailable as error:
            log.warning("vectors_discarded", reason=error.message)
            self.discard()

    def discard(self) -> None:
        """Removes all vectors; the next use begins with none."""
        with self._lock:
            self.close()
            remove(self.path)
            for path in self.path.parent.glob(NUMBERS_PATTERN):
                path.unlink(missing_ok=True)

    def _is_absent(self) -> bool:
        with self._lock:
            return self._db is None and not self.path.exists()

    @contextmanager
    def _using(self) -> Generator[Database]:
        """Gives the connection, to one thread at a time."""
        with self._lock, self._named_errors():
            if self._db is None:
                self._db = _open_or_replace(self)
                self._zero_free(self._db)
            yield self._db

    def _zero_free(self, db: Database) -> None:
        """Zeroes what a kill may have left between a commit and the zeroing after it."""
        rows = db.execute("SELECT generation, slot FROM free").fetchall()
        for generation in {int(row[0]) for row in rows}:
            self._zero(db, generation, [int(slot) for g, slot in rows if g == generation])

    def _zero(self, db: Database, generation: int, slots: Sequence[int]) -> None:
        if slots:
            sql = "SELECT dimension FROM generation WHERE id = ?"
            found = db.execute(sql, (generation,)).fetchone()
            blank = bytes(int(found[0]) if found else 0)
            self._write(generation, dict.fromkeys(slots, blank))

    def _write(self, generation: int, rows: dict[int, bytes], *, create: bool = False) -> None:
        """Writes rows through to the disk; the file grows to hold them.

        One that somebody deleted is not made anew: the rows that it had would be missed by nobody.
        """
        flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        file = os.open(self.numbers(generation), flags, 0o600)
        try:
            for slot, code in rows.items():
                os.pwrite(file, code, slot * len(code))
            os.fsync(file)
        finally:
            os.close(file)

    @contextmanager
    def _named_errors(self) -> Generator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            damaged = isinstance(error, apsw.CorruptError | apsw.NotADBError | FileNotFoundError)
            raise (DamagedVectors if damaged else Unavailable)(
                f"the vectors {self.path} can't be used ({error}); check the free space and the "
                "rights of its directory; they are derived and may be deleted",
                path=str(self.path),
            ) from error


def _slots_of(
    db: Database, generation: int, docs: Iterable[DocRef]
) -> Generator[tuple[DocRef, int]]:
    refs: dict[Kind, list[str]] = {}
    for kind, ref in docs:
        refs.setdefault(kind, []).append(ref)
    sql = """SELECT ref, slot FROM json_each(?3) AS here CROSS JOIN vector
             ON generation = ?1 AND kind = ?2 AND ref = here.value"""
    for kind, named in refs.items():
        for ref, slot in db.execute(sql, (generation, kind, _listed(named))).fetchall():
            yield (kind, str(ref)), int(slot)


def _free(db: Database, generation: int, docs: Sequence[DocRef]) -> list[int]:
    """Takes documents out and returns their slots, which are free from then on."""
    slots = sorted({slot for _, slot in _slots_of(db, generation, docs)})
    bound = [(generation, slot) for slot in slots]
    db.executemany("DELETE FROM vector WHERE generation = ? AND slot = ?", bound)
    db.executemany("INSERT OR IGNORE INTO free VALUES (?, ?)", bound)
    return slots


def _take_slots(db: Database, generation: int, n: int, *, besides: Sequence[int]) -> list[int]:
    """Returns `n` slots to write to: free ones, but for those freed just now, then new ones."""
    sql = "SELECT slot FROM free WHERE generation = ? ORDER BY slot LIMIT ?"
    rows = db.execute(sql, (generation, n + len(besides))).fetchall()
    free = [int(slot) for (slot,) in rows if slot not in set(besides)][:n]
    bound = [(generation, slot) for slot in free]
    db.executemany("DELETE FROM free WHERE generation = ? AND slot = ?", bound)
    first = _slots_used(db, generation)
    more = n - len(free)
    db.execute("UPDATE generation SET slots = ? WHERE id = ?", (first + more, generation))
    return [*free, *range(first, first + more)]


def _slots_used(db: Database, generation: int) -> int:
    found = db.execute("SELECT slots FROM generation WHERE id = ?", (generation,)).fetchone()
    return int(found[0]) if found else 0


def _insert(db: Database, generation: int, slot: int, one: Made) -> None:
    db.execute("UPDATE generation SET changes = changes + 1 WHERE id = ?", (generation,))
    db.execute(
        """INSERT INTO vector (generation, slot, kind, ref, digest, change)
           SELECT ?1, ?2, ?3, ?4, ?5, changes FROM generation WHERE id = ?1""",
        (generation, slot, *one.ref, one.digest),
    )


def _listed(values: Sequence[str] | Sequence[int]) -> str:
    return json.encode(list(values)).decode()


def _open_or_replace(file: VectorFile) -> Database:
    """Returns a connection to a file of this schema: the present one, else an empty one."""
    if file.path.exists():
        db = _connect(file.path)
        try:
            if _is_usable(db, file):
                return db
        except apsw.Error as error:
            log.info("vectors_damaged", reason=str(error))
        db.close()
        file.discard()
    file.path.touch(mode=0o600)
    db = _connect(file.path)
    for pragma in _PRAGMAS:
        db.execute(pragma).fetchall()
    with db:
        db.execute(_SCHEMA)
    return db


def _is_usable(db: Database, file: VectorFile) -> bool:
    """Tells whether the schema is this one and each generation has its numbers."""
    ours = db.pragma("application_id") == _APPLICATION_ID
    if not ours or db.pragma("user_version") != _SCHEMA_VERSION:
        return False
    for pragma in _PRAGMAS:
        db.execute(pragma).fetchall()
    db.execute("SELECT * FROM vector LIMIT 1").fetchall()
    sql = "SELECT id, slots, dimension FROM generation"
    for generation, slots, dimension in db.execute(sql).fetchall():
        numbers = file.numbers(int(generation))
        there = numbers.stat().st_size if numbers.exists() else 0
        if there < slots * dimension:
            return False
    return True


def _connect(path: Path) -> Database:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(_BUSY_MS)
    return cast("Database", connection)
