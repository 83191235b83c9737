"""Exports: every turn that a session reaches, and enough to recreate it elsewhere."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.stage import Stage, assistant, scratch, user
from turnmark_events.errors import NotFound, Refused
from turnmark_session_store import export
from turnmark_session_store.model import Speaker
from turnmark_session_store.paging import cursor_of
from turnmark_session_store.requests import ExportSession

pytestmark = pytest.mark.anyio


def decoded(lines: list[str]) -> list[dict[str, Any]]:
    """Returns the lines as objects."""
    return [msgspec.json.decode(line) for line in lines]


async def test_holds_header_turns_branches_and_end(stage: Stage) -> None:
    """Parents before children; ids, states, digests, marks, the head and its branch."""
    await stage.workspace()
    await stage.open(title="标题", project="/home/x", agent="codex")
    await stage.append(user("你好", "a", speaker=Speaker(id="u-17", name="Dana")), "b")
    other = await stage.append("c", after="a")
    await stage.settle("a")
    header, *turn_lines, first, second, end = decoded(await stage.export())
    assert header["session"] == "s"
    assert (header["title"], header["project"], header["agent"]) == ("标题", "/home/x", "codex")
    assert header["namespace"] == "family:s"
    assert [line["id"] for line in turn_lines] == ["a", "b", "c"]
    assert turn_lines[0]["speaker"] == {"id": "u-17", "name": "Dana"}
    assert turn_lines[0]["marks"]["w-0123456789abcdef"]["outcome"] == "kept"
    assert [line["predecessor"] for line in turn_lines] == [None, "a", "a"]
    assert {len(line["digest"]) for line in turn_lines} == {32}
    assert (first["tip"], first["name"], first["state"]) == ("b", "main", "live")
    assert (second["tip"], second["branch"]) == ("c", other.branch)
    assert end == {"type": "end", "head": "c", "turns": 3, "branch": other.branch}


async def test_is_the_same_in_pages(stage: Stage) -> None:
    """However long they are."""
    await stage.append(*[f"t{number}" for number in range(7)])
    whole = await stage.export()
    for page in (1, 2, 3, 9, 10):
        assert await stage.export(page=page) == whole


@pytest.mark.parametrize("page", [1, 2, 9])
async def test_a_long_line_comes_in_parts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Whatever a frame takes, each line comes whole once its parts are put together."""
    await stage.append(user("a" * 1_000, "a"), "b", user("长" * 700, "c"))
    whole = await stage.export()
    for part in (250, 300, 999, len(whole[1])):
        monkeypatch.setattr(export, "_PART_CHARACTERS", part)
        assert await stage.export(page=page) == whole
    beyond = cursor_of(1, len(whole[1]))
    with pytest.raises(Refused, match="begin again"):
        await stage.store.export_session(ExportSession(session="s", cursor=beyond))


async def test_an_unknown_session_is_not_found(stage: Stage) -> None:
    """Also a deleted one."""
    await stage.append("a")
    await stage.delete()
    with pytest.raises(NotFound):
        await stage.export()


async def test_memory_stays_masked(stage: Stage) -> None:
    """The export holds what the store holds; the digest is of the raw text all the same."""
    secret = "sk-ant-api03-" + "a1B2c3D4" * 6
    await stage.append(user(f"key {secret}", "a"))
    lines = await stage.export()
    assert not any(secret in line for line in lines)
    assert decoded(lines)[1]["masked"] is True
    with scratch() as place:
        async with Stage(place / "other.db") as other:
            await other.bring(lines)
            assert await other.export() == lines
            assert (await other.append(user(f"key {secret}", "a"), after=None)).new == 0


async def test_a_fork_holds_the_trunk_it_reaches(stage: Stage) -> None:
    """And says where it came from."""
    await stage.append("a", "b")
    await stage.open("t", forked_from=("s", "a"))
    await stage.append("x", session="t")
    header, *rest = decoded(await stage.export("t"))
    assert header["forked_from"] == {"session": "s", "turn": "a"}
    assert [line["id"] for line in rest if line["type"] == "turn"] == ["a", "x"]


_steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "fork", "root", "rewind", "checkout", "merge", "archive"]),
        st.integers(0, 100),
    ),
    max_size=14,
)


@given(steps=_steps, size=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
async def test_recreates_any_history(steps: list[tuple[str, int]], size: int) -> None:
    """Export → import → export gives equal lines; importing again changes nothing."""
    with scratch() as place:
        async with Stage(place / "a.db") as first, Stage(place / "b.db") as second:
            await _live(first, steps)
            lines = await first.export(page=size)
            answer = await second.bring(lines)
            assert answer.turns == answer.new
            assert await second.export() == lines
            assert second.retired() == first.retired()
            seq = second.seq
            again = await second.bring(lines)
            assert (again.new, second.seq) == (0, seq)
            assert (await first.bring(lines)).new == 0
            assert await first.export() == lines


async def _live(stage: Stage, steps: list[tuple[str, int]]) -> None:
    await stage.append("t0")
    made = ["t0"]
    for verb, number in steps:
        key = f"t{len(made)}"
        tips = sorted(set(filter(None, await stage.tips())))
        path = await stage.path_to()
        if verb in ("append", "fork", "root"):
            after = {"append": path[-1], "fork": made[number % len(made)], "root": None}[verb]
            await stage.append(assistant(f"words {key}", key), after=after)
            made.append(key)
        elif verb == "rewind":
            await stage.rewind(path[number % len(path)])
        elif verb == "checkout":
            await stage.checkout(made[number % len(made)], restore=True)
        elif verb == "merge" and len(tips) > 1:
            await stage.merge([tips[0], tips[1 + number % (len(tips) - 1)]], user(key, key))
            made.append(key)
        elif verb == "archive":
            rows = await stage.branches()
            live = [row.branch for row in rows if row.state == "live"]
            if live:
                await stage.archive(live[number % len(live)])
