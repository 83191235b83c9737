"""Laws 4 and 9 over power cuts: what has returned is there, and a redo writes nothing twice."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from laws.power_cut import watched
from laws.soundness import places_with, store_faults, workspace_faults
from memory.at_work import NOTHING, AtWork, Scribe, at_work, tokens, user
from turnmark_memory.archive import Archive
from turnmark_memory.durable import digest_of
from turnmark_memory.exchange import close_exchange, exchange
from turnmark_memory.file_exchange import MergeInput, StagedFile
from turnmark_memory.labels import label_of
from turnmark_memory.model import Answer, Batch, Evidence
from turnmark_memory.requests import RecallRequest, RememberRequest
from turnmark_memory.revisions import RevisionRecord, read_record, write_record
from turnmark_memory.workspace import RevisionStamp, Workspace
from turnmark_session_store import failpoints
from turnmark_session_store.database import open_writer
from turnmark_session_store.requests import Rewind, SessionRef

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="flushes are seen through /proc"),
]

AT = datetime(2026, 8, 9, 14, tzinfo=UTC)
DERIVED = ("index.db", "sources.db", "vectors.db")
"""A cut may cost what they held last: here it costs them wholly."""


def evidence(turn: str, session: str) -> Evidence:
    """Returns a turn to be archived."""
    return Evidence(
        key=1,
        namespace="claude-code",
        id=turn,
        label=label_of("claude-code", turn),
        session=session,
        agent="claude-code",
        project=None,
        role="user",
        speaker_id="u-17",
        speaker_name="Dana",
        time=AT,
        text=f"第 {turn} 句 fact {turn}",
        tokens=5,
    )


def archived(root: Path) -> list[str]:
    """Returns the turns in the sources of a workspace that a cut left."""
    with Workspace.open(root) as workspace:
        archive = Archive(workspace)
        try:
            return [turn.id for _, turn in archive.scan()]
        finally:
            archive.close()


def test_archived_evidence_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a new file and of one that was there, as soon as `append` returned."""
    with Workspace.open(tmp_path / "memory") as workspace:
        archive = Archive(workspace)
        with watched(workspace.root, monkeypatch) as disk:
            archive.append([evidence("t1", "s"), evidence("u1", "北")])
            left = disk.leave(tmp_path / "first", without=DERIVED)
            archive.append([evidence("t2", "s")])
            later = disk.leave(tmp_path / "second", without=DERIVED)
        archive.close()
    assert sorted(archived(left)) == ["t1", "u1"]
    assert sorted(archived(later)) == ["t1", "t2", "u1"]


def test_a_killed_process_s_lines_last_before_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the next start, they are flushed: nothing else will write them again."""
    root = tmp_path / "memory"
    with Workspace.open(root) as workspace:
        archive = Archive(workspace)
        archive.append([evidence("t1", "s")])
        archive.close()
    (source,) = (root / "sources").rglob("*.jsonl")
    with watched(root, monkeypatch) as disk:
        labels = label_of("claude-code", "t1"), label_of("claude-code", "t2")
        line = source.read_text("utf-8").replace('"t1"', '"t2"').replace(*labels)
        with source.open("a", encoding="utf-8") as written:
            written.write(line)
        with Workspace.open(root) as workspace:
            archive = Archive(workspace)
            assert archive.by_turn("claude-code", "t2") is not None
            left = disk.leave(tmp_path / "left", without=DERIVED)
            archive.close()
    assert archived(left) == ["t1", "t2"]


def test_a_replaced_file_is_the_new_one_and_a_removed_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, as soon as the call returned; so is a revision's record, and its stamp."""
    with Workspace.open(tmp_path / "memory") as workspace:
        workspace.tree.replace("held", b"old", staging=".turnmark/staging")
        workspace.tree.replace("gone", b"old", staging=".turnmark/staging")
        record = RevisionRecord(revision=3, at=AT, cause="a test", blocks=(), topics=(), changes=())
        with watched(workspace.root, monkeypatch) as disk:
            workspace.tree.replace("held", "新".encode(), staging=".turnmark/staging")
            after_replace = disk.leave(tmp_path / "replaced")
            workspace.tree.remove("gone")
            after_remove = disk.leave(tmp_path / "removed")
            write_record(workspace, record)
            workspace.write_revision(RevisionStamp(revision=3, at=AT))
            after_record = disk.leave(tmp_path / "recorded")
    assert (after_replace / "held").read_text("utf-8") == "新"
    assert not (after_remove / "gone").exists()
    with Workspace.open(after_record) as workspace:
        assert read_record(workspace, 3) == record
        assert workspace.revision() == RevisionStamp(revision=3, at=AT)


def test_a_new_store_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledged append needs a file that is found after the cut."""
    with watched(tmp_path, monkeypatch) as disk:
        open_writer(tmp_path / "sessions.db").close()
        assert "sessions.db" in disk.names


class Cut(Exception):
    """The power goes here."""


def merge_lines(wanted: MergeInput) -> bytes:
    """Their lines, then those of ours that are new."""
    base, theirs = (wanted.base or b"").splitlines(), (wanted.theirs or b"").splitlines()
    added = [one for one in (wanted.ours or b"").splitlines() if one not in base + theirs]
    return b"".join(line + b"\n" for line in [*theirs, *added])


def file(path: str, base: bytes | None, content: bytes | None) -> StagedFile:
    """Returns a file of an install."""
    digest = None if base is None else digest_of(base)
    return StagedFile(path=path, base=digest, base_content=base, content=content)


FILES = (
    file("topics/people/dana.md", b"base\n", b"base\nours\n"),
    file("topics/projects/新.md", None, b"fresh\n"),
    file("topics/subjects/old.md", b"old\n", None),
)


def prepared(root: Path) -> None:
    """Makes the workspace before the install; a person has saved one file since its base."""
    with Workspace.open(root) as workspace:
        for path, content in (
            ("topics/people/dana.md", b"base\ntheirs\n"),
            ("topics/subjects/old.md", b"old\n"),
        ):
            workspace.tree.replace(path, content, staging=".turnmark/staging")


def topics(root: Path) -> dict[str, str]:
    """Returns the topic files of a workspace."""
    found = (root / "topics").rglob("*.md")
    return {path.stem: path.read_text("utf-8") for path in found}


def test_an_install_is_in_place_or_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at each step, it comes to the same when repeated, and the person's line stays."""
    stamp = RevisionStamp(revision=1, at=AT)
    wanted = {"dana": "base\ntheirs\nours\n", "新": "fresh\n"}
    for step in range(100):
        root = tmp_path / f"{step}"
        prepared(root)
        left_to_go = step
        with Workspace.open(root) as workspace, watched(root, monkeypatch) as disk:

            def checkpoint(_: str) -> None:
                nonlocal left_to_go
                left_to_go -= 1
                if left_to_go == 0:
                    raise Cut

            try:
                exchange(workspace, FILES, merge_lines, stamp=stamp, checkpoint=checkpoint)
                cut = False
            except Cut:
                cut = True
            left = disk.leave(tmp_path / f"{step}-left")
        if not cut:
            assert topics(left) == wanted
        with Workspace.open(left) as workspace:
            if workspace.revision() == stamp:
                assert topics(left) == wanted
            exchange(workspace, FILES, merge_lines, stamp=stamp)
            close_exchange(workspace, merge_lines)
            assert topics(left) == wanted
            assert workspace.revision() == stamp
        if step and not cut:
            return
    raise AssertionError("an install has no end")


async def test_a_memory_at_work_loses_nothing_and_writes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut wherever a batch can be on its way, the next life comes to the same memory."""
    left: dict[str, Path] = {}
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.say("s", "m3")
        await work.say("s", "a1", after="m1")
        with watched(work.place, monkeypatch) as disk:

            def cut(name: str) -> None:
                if name not in left:
                    left[name] = disk.leave(tmp_path / name, without=DERIVED)

            monkeypatch.setattr(failpoints, "hook", cut)
            await work.flush()
            await work.quiet()
            monkeypatch.setattr(failpoints, "hook", None)
            left["done"] = disk.leave(tmp_path / "done", without=DERIVED)
    assert {"batch.archived", "install.journalled", "install.in_place", "core.replaced"} < set(left)
    for name, place in left.items():
        facts, faults = await lives_on(place)
        assert (facts, faults) == (["a1", "m1", "m2", "m3"], []), name


SECRET = "pomegranate"


async def test_what_was_forgotten_is_nowhere_after_a_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 13: cut at any step from the forgetting on, the next life ends it without being asked."""
    left: dict[str, Path] = {}
    async with at_work() as work:
        await work.append("s", [user("fact one", "m1"), user(f"fact {SECRET}", "m2")])
        await work.say("keep", "k1")
        await work.flush()
        with watched(work.place, monkeypatch) as disk:

            def cut(name: str) -> None:
                if name not in left and (left or name == "erase.forgotten"):
                    left[name] = disk.leave(tmp_path / name, without=DERIVED)

            monkeypatch.setattr(failpoints, "hook", cut)
            deleted = await work.store.delete_session(SessionRef(session="s"))
            await work.memory.forgotten(deleted.turns)
            await work.quiet()
            monkeypatch.setattr(failpoints, "hook", None)
            left["done"] = disk.leave(tmp_path / "done", without=DERIVED)
    assert {"erase.slice", "erase.retired", "erase.archived", "erase.indexed"} < set(left)
    for name, place in left.items():
        assert places_with(place, SECRET) == [] or name != "done"
        next_life = AtWork(place, Scribe())
        await next_life.start()
        await next_life.store.erase_forgotten()  # as the daemon does at its start
        await next_life.quiet()
        await next_life.flush()
        facts = next_life.facts()
        await next_life.stop()
        assert (facts, places_with(place, SECRET)) == (["k1"], []), name


TEA = "I drink my tea without sugar. 我喝茶不加糖。"


async def test_what_is_taken_back_or_remembered_or_tidied_is_so_wholly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at any step, the next life has a rewind done, a fact once, and pages that agree."""
    left: dict[str, Path] = {}
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        with watched(work.place, monkeypatch) as disk:

            def cut(name: str) -> None:
                if name not in left and not name.startswith("store."):
                    left[name] = disk.leave(tmp_path / name, without=DERIVED)

            monkeypatch.setattr(failpoints, "hook", cut)
            await work.store.rewind(Rewind(session="s", to="m1"))
            await work.quiet()
            await work.memory.remember(RememberRequest(text=TEA))
            await work.organize(wait=True)
            await work.quiet()
            monkeypatch.setattr(failpoints, "hook", None)
            left["done"] = disk.leave(tmp_path / "done", without=DERIVED)
    assert {"install.in_place", "remember.archived", "night.reported"} < set(left)
    for name, place in left.items():
        facts, faults = await lives_on(place)
        assert (facts, faults) == (["m1"], []), name
        said = sum(text.count(TEA) for text in topics(place / "memory").values())
        assert said == 1 or (said == 0 and name != "done"), name


def save(work: AtWork, how: str) -> Path:
    """Saves a topic as an editor does, which flushes nothing; returns its path."""
    folder = work.root / "topics" / "subjects"
    path = folder / ("梨.md" if how == "new" else "facts.md")
    before = "" if how == "new" else path.read_text("utf-8")
    written = folder / ".saved" if how == "renamed" else path
    written.write_text(f"{before}\nThe pear tree is mine. 梨树是我的。\n", "utf-8")
    if how == "renamed":
        written.rename(path)
    return path


@pytest.mark.parametrize("how", ["in place", "renamed", "new"])
async def test_a_person_s_save_that_memory_has_seen_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Law 12: else the next start would take what the cut left of it for what they wanted."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.flush()
        with watched(work.place, monkeypatch) as disk:
            name = save(work, how).relative_to(work.place)
            await work.memory.rescan()
            left = disk.leave(tmp_path / "left", without=DERIVED)
    assert "The pear tree is mine. 梨树是我的。" in (left / name).read_text("utf-8")
    facts, faults = await lives_on(left)
    assert (facts, faults) == (["m1"], [])
    assert "The pear tree is mine. 梨树是我的。" in (left / name).read_text("utf-8")


def nothing(_: Batch) -> Answer:
    """Answers that there is nothing worth keeping."""
    return NOTHING


async def test_what_the_index_lost_last_is_found_again(tmp_path: Path) -> None:
    """Law 11: turns of which nothing was kept bring no install, and are missed all the same."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.flush()
        await work.stop()
        index = work.root / ".turnmark" / "index.db"
        lost = shutil.copy(index, tmp_path / "index.db")
        work.scribe.answer = nothing
        await work.start()
        await work.say("s", "n1")
        await work.flush()
        await work.stop()
        assert not index.with_name("index.db-wal").exists()
        shutil.copy(lost, index)
        await work.start()
        found = await work.memory.recall(RecallRequest(query="fact n1", kinds=("turn",)))
        assert [hit.text for hit in found.hits][:1] == ["fact n1"]


async def lives_on(place: Path) -> tuple[list[str], list[str]]:
    """Opens what a cut left, writes what is owed; returns the facts and all that is wrong."""
    work = AtWork(place, Scribe())
    await work.start()
    await work.flush()
    await work.quiet()
    facts = sorted(work.facts())
    await work.stop()
    faults = [*store_faults(place / "sessions.db"), *workspace_faults(work.root, tokens)]
    return facts, faults
