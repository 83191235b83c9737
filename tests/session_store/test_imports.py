"""Imports: into nothing, into what is known, of files that grew, of lines that are not whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from session_store.stage import WORKSPACE, Stage, scratch, user
from turnmark_events.errors import Conflict, NotFound, Refused
from turnmark_session_store.requests import ImportLines
from turnmark_session_store.store import UploadGoesOn

pytestmark = pytest.mark.anyio


def reader(
    *turns: tuple[str, str | None],
    tips: list[str],
    head: str | None = None,
    taken_back: list[str] | None = None,
    supersedes: dict[str, str] | None = None,
    **header: Any,
) -> list[str]:
    """Returns the lines of a reader: (id, predecessor) of each turn."""
    lines: list[dict[str, Any]] = [
        {
            "type": "turnmark-export",
            "version": 1,
            "session": "s",
            "agent": "claude-code",
            "namespace": "claude-code",
            "source": "reader",
            **header,
        }
    ]
    for key, predecessor in turns:
        line = {"type": "turn", "id": key, "role": "user", "text": key, "predecessor": predecessor}
        lines.append({**line, "supersedes": (supersedes or {}).get(key)})
    if taken_back:
        lines.append({"type": "taken_back", "turns": taken_back})
    lines += [{"type": "branch", "tip": tip} for tip in tips]
    lines.append({"type": "end", "head": head or tips[-1], "turns": len(turns)})
    return [msgspec.json.encode(line).decode() for line in lines]


ABC: list[tuple[str, str | None]] = [("a", None), ("b", "a"), ("c", "b")]


async def test_a_file_that_grew_continues_its_branches(stage: Stage) -> None:
    """Same branch, old → new; the head follows the agent's."""
    await stage.bring(reader(*ABC, tips=["c"]))
    (branch,) = await stage.branches()
    before = stage.seq
    answer = await stage.bring(reader(*ABC, ("d", "c"), tips=["d"]))
    assert (answer.turns, answer.new) == (4, 1)
    (said,) = stage.moves(before)
    assert (said.cause, said.branch, said.old, said.new) == ("import", branch.branch, "c", "d")
    assert (said.head_old, said.head_new) == ("c", "d")


async def test_a_file_that_forked_gets_a_branch(stage: Stage) -> None:
    """One goes on, the other begins; the head goes where the agent's is, on equal rows."""
    await stage.bring(reader(*ABC, tips=["c"]))
    before = stage.seq
    await stage.bring(reader(*ABC, ("d", "c"), ("x", "b"), tips=["d", "x"], head="x"))
    said = {(move.old, move.new) for move in stage.moves(before)}
    assert said == {("c", "d"), (None, "x")}
    assert {(move.head_old, move.head_new) for move in stage.moves(before)} == {("c", "x")}
    assert await stage.tips() == ["d", "x"]


async def test_reading_the_same_file_again_changes_nothing(stage: Stage) -> None:
    """Also where a client moved the head meanwhile."""
    lines = reader(*ABC, ("x", "b"), tips=["c", "x"])
    await stage.bring(lines)
    await stage.checkout("a")
    before = stage.seq
    assert (await stage.bring(lines)).new == 0
    assert (stage.seq, await stage.head()) == (before, "a")


async def test_what_a_record_takes_back_is_taken_back_once(stage: Stage) -> None:
    """The branch goes back before it; what a client restores stays restored."""
    await stage.bring(reader(*ABC, tips=["c"]))
    before = stage.seq
    lines = reader(*ABC, ("d", "a"), tips=["d"], taken_back=["c", "b"])
    await stage.bring(lines)
    assert stage.retired() == {"b", "c"}
    (said,) = stage.moves(before)
    assert (said.old, said.new, said.head_old, said.head_new) == ("c", "d", "c", "d")
    await stage.checkout("c", restore=True)
    assert stage.retired() == set()
    await stage.bring(lines)
    assert stage.retired() == set()
    assert await stage.head() == "c"


async def test_a_record_that_takes_everything_back_ends_the_branch(stage: Stage) -> None:
    """Null where a tip ends; no head is left."""
    await stage.bring(reader(("a", None), tips=["a"]))
    before = stage.seq
    await stage.bring(reader(("a", None), ("b", None), tips=["b"], taken_back=["a"]))
    assert {(move.old, move.new) for move in stage.moves(before)} == {("a", None), (None, "b")}
    assert (await stage.head(), stage.retired()) == ("b", {"a"})
    assert len(await stage.export()) == 1 + 2 + 1 + 1


async def test_a_row_that_changed_replaces_the_old_one(stage: Stage) -> None:
    """`<id>~2` supersedes: the branch that ended there moves over, with the head."""
    await stage.bring(reader(*ABC, tips=["c"]))
    before = stage.seq
    lines = reader(*ABC, ("c~2", "b"), tips=["c~2"], supersedes={"c~2": "c"})
    await stage.bring(lines)
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new, said.head_new) == ("supersede", "c", "c~2", "c~2")
    assert stage.retired() == {"c"}
    before = stage.seq
    await stage.bring(lines)
    assert stage.seq == before


async def test_readers_leave_what_is_retired_retired(stage: Stage) -> None:
    """A branch whose tip was taken back here is not brought back."""
    await stage.bring(reader(*ABC, tips=["c"]))
    await stage.rewind("a")
    await stage.bring(reader(*ABC, tips=["c"]))
    assert stage.retired() == {"b", "c"}
    assert (await stage.tips(), await stage.head()) == (["a"], "a")


async def test_a_declared_namespace_wins_over_a_pointer(stage: Stage) -> None:
    """Another agent's session may bear the name that a reader's pointer leads to."""
    await stage.append("a", session="origin")
    pointer = {"session": "origin", "turn": "a"}
    await stage.bring(reader(*ABC, tips=["c"], forked_from=pointer))
    assert (await stage.show()).namespace == "claude-code"
    assert (await stage.tips(), await stage.path_to("origin")) == (["c"], ["a"])


async def test_a_fork_that_a_reader_found_reaches_the_trunk(stage: Stage) -> None:
    """Its turns hang on those of the session that it was forked from."""
    await stage.bring(reader(*ABC, tips=["c"]))
    lines = reader(("x", "b"), tips=["x"], session="t", forked_from={"session": "s", "turn": "b"})
    assert (await stage.bring(lines)).new == 1
    assert await stage.path_to("t") == ["a", "b", "x"]
    assert (await stage.tips("s"), await stage.tips("t")) == (["c"], ["x"])


async def test_an_export_moves_nothing_that_is_here(stage: Stage) -> None:
    """Missing turns come on a branch of their own, so that each is reached by one."""
    await stage.append("a", "b")
    with scratch() as place:
        async with Stage(place / "other.db") as other:
            await other.bring(await stage.export())
            await other.append("c")
            await other.append("x", after="a")
            lines = await other.export()
    before = stage.seq
    assert (await stage.bring(lines)).new == 2
    assert await stage.tips() == ["b", "c", "x"]
    assert await stage.head() == "b"
    assert [(move.old, move.new) for move in stage.moves(before)] == [(None, "c"), (None, "x")]
    await stage.workspace()
    assert await stage.owes() == {"a", "b", "c", "x"}
    seq = stage.seq
    await stage.bring(lines)
    assert stage.seq == seq


async def test_memory_mode_and_title_of_a_known_session_stay(stage: Stage) -> None:
    """An import never switches memory on where it was switched off."""
    await stage.append("a")
    lines = await stage.export()
    await stage.open(memory="off", title="mine")
    assert (await stage.bring(lines)).new == 0
    shown = await stage.show()
    assert (shown.memory, shown.title) == ("off", "mine")


async def test_marks_come_for_the_same_workspace_and_a_reached_revision(stage: Stage) -> None:
    """Elsewhere the turns are owed."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    await stage.settle("a", "b")
    await stage.park("b", reason="backlog")
    lines = await stage.export()
    for revision, workspace, kept in ((1, WORKSPACE, True), (0, WORKSPACE, False), (9, "w", False)):
        with scratch() as place:
            async with Stage(place / "other.db") as other:
                await other.workspace(workspace)
                await other.write(
                    lambda tx, revision=revision: tx.execute(
                        "UPDATE workspace SET revision = ?", (revision,)
                    )
                )
                await other.bring(lines)
                expected = {"a": ("kept", None), "b": ("parked", "backlog")} if kept else {}
                found = other.marks()
                assert {turn: found[turn] for turn in found if turn == "a"} == {
                    turn: mark for turn, mark in expected.items() if turn == "a"
                }
                assert bool(found) == kept


async def test_a_conflict_stores_nothing(stage: Stage) -> None:
    """It is found before the first turn is placed."""
    await stage.append(user("other words", "c"))
    lines = await _exported(["a", "b", "c"])
    with pytest.raises(Conflict, match="nothing was imported") as caught:
        await stage.bring(lines)
    assert caught.value.facts["turn"] == "c"
    assert stage.sql("SELECT key FROM turn") == [("c",)]


async def test_a_session_in_another_namespace_is_a_conflict(stage: Stage) -> None:
    """A namespace is fixed at the first turn."""
    await stage.append("a")
    with pytest.raises(Conflict, match="another session's name"):
        await stage.bring(reader(*ABC, tips=["c"]))


async def test_lines_that_are_not_whole_are_refused(stage: Stage) -> None:
    """Each with the number of the line; nothing of it is stored."""
    lines = await _exported(["a", "b", "c"])
    for count in range(len(lines)):
        with pytest.raises(Refused) as caught:
            await stage.bring(lines[:count])
        assert caught.value.facts["line"] in (count, count + 1)
    assert stage.sql("SELECT count(*) FROM session") == [(0,)]


@pytest.mark.parametrize(
    ("number", "change", "match"),
    [
        (1, ("turnmark-export", "other"), "not an export line"),
        (1, ('"version":1', '"version":2'), "not the header"),
        (2, ("{", ""), "not an export line"),
        (2, ("words of a", "words of x"), "not the one that its digest is of"),
        (2, ('"digest":"', '"digest":"zz'), "hex digits"),
        (3, ('"predecessor":"a"', '"predecessor":"q"'), "points at turn 'q'"),
        (5, ('"tip":"c"', '"tip":"q"'), "points at turn 'q'"),
        (6, ('"head":"c"', '"head":"q"'), "points at turn 'q'"),
        (6, ('"turns":3', '"turns":4'), "says 4"),
    ],
)
async def test_a_garbled_line_is_refused(
    stage: Stage, number: int, change: tuple[str, str], match: str
) -> None:
    """Named by its number; nothing is stored."""
    lines = await _exported(["a", "b", "c"])
    assert change[0] in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(*change, 1)
    with pytest.raises(Refused, match=match) as caught:
        await stage.bring(lines)
    assert caught.value.facts["line"] == number
    assert stage.sql("SELECT count(*) FROM session") == [(0,)]


async def test_lines_after_the_end_are_refused(stage: Stage) -> None:
    """Two exports in one are none."""
    lines = await _exported(["a"])
    with pytest.raises(Refused, match="outside"):
        await stage.bring([*lines, *lines])


async def test_an_upload_comes_in_frames(stage: Stage) -> None:
    """Until the last one nothing is stored; an unknown upload is not found."""
    lines = await _exported(["a", "b", "c"])
    upload: str | None = None
    for line in lines[:-1]:
        answer = await stage.store.import_lines(
            ImportLines(lines=[line], upload=upload, last=False)
        )
        assert isinstance(answer, UploadGoesOn)
        upload = answer.upload
        assert stage.sql("SELECT count(*) FROM session") == [(0,)]
    await stage.store.import_lines(ImportLines(lines=lines[-1:], upload=upload, last=True))
    assert await stage.path_to() == ["a", "b", "c"]
    with pytest.raises(NotFound, match="begin again"):
        await stage.store.import_lines(ImportLines(lines=[], upload=upload, last=True))


async def test_a_long_import_is_cut_into_slices(stage: Stage) -> None:
    """An agent's append comes through in between; the branches come at the end."""
    lines = await _exported([f"t{number}" for number in range(450)])
    before = stage.store.statistics()["groups"]
    await stage.bring(lines)
    assert stage.store.statistics()["groups"] >= before + 5
    assert len(await stage.path_to()) == 450


async def test_an_import_that_was_cut_off_goes_on(stage: Stage) -> None:
    """Turns without branches are found again by the next one, which brings the branches."""
    lines = await _exported(["a", "b", "c"])
    from turnmark_session_store.imports import begin_import, parse_lines, place_slice

    plan = parse_lines(list(lines), count=len, mask=True)
    await stage.write(lambda tx: begin_import(tx, plan))
    await stage.write(lambda tx: place_slice(tx, plan, 0))
    await stage.restart()
    answer = await stage.bring(lines)
    assert (answer.turns, answer.new) == (3, 0)
    assert await stage.export() == lines


async def test_a_deleted_session_stays_forgotten(stage: Stage) -> None:
    """Its export brings the shape back, not the words."""
    await stage.append("a", "b")
    lines = await stage.export()
    await stage.delete()
    assert (await stage.bring(lines)).new == 0
    assert [turn.text for turn in await stage.line()] == ["", ""]


async def test_forgotten_turns_travel_as_forgotten(stage: Stage) -> None:
    """No words, and none can be put in later."""
    await stage.append("a", "b")
    await stage.open("t", forked_from=("s", "a"))
    await stage.delete("t")
    await stage.delete("s")
    await stage.append("a", "n")
    lines = await stage.export()
    with scratch() as place:
        async with Stage(place / "other.db") as other:
            await other.bring(lines)
            assert other.sql("SELECT key FROM turn JOIN turn_words ON turn = id") == [("n",)]
            assert (await other.append("a", after=None)).forgotten == ["a"]


async def _exported(ids: list[str]) -> list[str]:
    with scratch() as place:
        async with Stage(place / "origin.db") as origin:
            await origin.append(*ids)
            return await origin.export()
