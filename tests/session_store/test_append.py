"""Appending: where a turn goes, what moves, what is refused, and what is there already."""

from __future__ import annotations

from typing import Any

import pytest

from session_store.stage import Stage, assistant, turns, user
from turnmark_events.errors import Conflict, NotFound, Refused, Stale
from turnmark_session_store.model import CallerRef, ContentPart, Speaker, TurnIn

pytestmark = pytest.mark.anyio

CAUSES = [
    pytest.param({}, ("append", "c", "x"), "x", False, id="after the head"),
    pytest.param({"after": "c"}, ("append", "c", "x"), "x", False, id="at the tip"),
    pytest.param({"after": "b"}, ("fork", None, "x"), "x", True, id="inside the branch"),
    pytest.param({"after": None}, ("root", None, "x"), "x", False, id="a new root"),
    pytest.param({"move_head": False}, ("append", "c", "x"), "c", False, id="head stays"),
    pytest.param(
        {"after": "a", "move_head": False}, ("fork", None, "x"), "c", True, id="fork, head stays"
    ),
]


@pytest.mark.parametrize(("where", "move", "head", "forked"), CAUSES)
async def test_moves_tip_and_head_as_the_table_says(
    stage: Stage, where: dict[str, Any], move: tuple[str, str, str], head: str, forked: bool
) -> None:
    """One row: the branch's true old tip and its new one; head as asked."""
    await stage.append("a", "b", "c")
    before = stage.seq
    answer = await stage.append("x", **where)
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new) == move
    assert (said.head_old, said.head_new) == ("c", head)
    assert (answer.head, answer.forked, answer.new, answer.turns) == (head, forked, 1, ["x"])
    assert said.branch == answer.branch
    assert await stage.head() == head


async def test_opens_an_unknown_session(stage: Stage) -> None:
    """A first append makes the session; its branch is called main."""
    answer = await stage.append("a", session="新会话")
    assert (answer.head, answer.forked, answer.new) == ("a", False, 1)
    (branch,) = await stage.branches("新会话")
    assert (branch.name, branch.tip, branch.state) == ("main", "a", "live")


async def test_continues_the_head_branch_of_two_at_one_tip(stage: Stage) -> None:
    """Two branches share a tip: the head's goes on."""
    first = (await stage.append("a", "b")).branch
    second = (await stage.append("c", after="a")).branch
    await stage.rewind("a")  # the second branch ends at a
    await stage.checkout("b")
    await stage.rewind("a")  # the first as well
    assert await stage.tips() == ["a", "a"]
    assert (await stage.append("d")).branch == first
    assert first != second


async def test_continues_the_branch_moved_last_where_the_head_is_elsewhere(stage: Stage) -> None:
    """Two branches share a tip and the head is on a third: the one last moved goes on."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.rewind("a")
    await stage.checkout("b")
    await stage.rewind("a")
    (first, second) = [row.branch for row in await stage.branches()]
    await stage.append("z", after=None)
    assert (await stage.append("d", after="a")).branch == first
    assert second != first


async def test_never_advances_a_branch_of_another_session(stage: Stage) -> None:
    """A session that was forked appends at the other's tip: it forks, the other's tip stays."""
    await stage.append("a", "b", session="s")
    await stage.open("t", forked_from=("s", "a"))
    answer = await stage.append("c", session="t", after="b")
    assert answer.forked
    assert await stage.tips("s") == ["b"]
    assert await stage.tips("t") == ["a", "c"]


async def test_spawns_beside_the_head(stage: Stage) -> None:
    """A turn with a caller is a new root; the head stays, and the next append follows the head."""
    await stage.append("a", "b")
    before = stage.seq
    spawned = await stage.append(user("task", "x", caller=CallerRef(session="s", turn="b")))
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new) == ("spawn", None, "x")
    assert (said.head_old, said.head_new) == ("b", "b")
    assert (spawned.head, spawned.forked) == ("b", False)
    assert await stage.path_to(tip="x") == ["x"]
    await stage.append("c")
    assert await stage.path_to() == ["a", "b", "c"]


async def test_a_spawn_takes_the_head_of_a_session_without_one(stage: Stage) -> None:
    """The first root of a sub-agent's own session carries its caller and is its head."""
    await stage.append("a")
    await stage.open("sub", caller=("s", "a"))
    before = stage.seq
    await stage.append(user("do it", "x"), assistant("done", "y"), session="sub")
    (said,) = stage.moves(before)
    assert (said.cause, said.head_new) == ("spawn", "y")
    root, answer = await stage.line("sub")
    assert root.caller == CallerRef(session="s", turn="a")
    assert not root.recordable
    assert answer.recordable


async def test_only_the_task_itself_is_not_recordable(stage: Stage) -> None:
    """What a person says to a sub-agent later is, caller or not; so is all that it answers."""
    await stage.append("a")
    caller = CallerRef(session="s", turn="a")
    task, later = user("task", "x", caller=caller), user("and more", "y", caller=caller)
    await stage.append(task, later, session="sub")
    rows = stage.sql("SELECT key, recordable FROM turn ORDER BY id")
    assert rows == [("a", 1), ("x", 0), ("y", 1)]


async def test_the_sessions_caller_is_only_of_its_first_root(stage: Stage) -> None:
    """A second root has no caller; the first one again is the same turn."""
    await stage.append("a")
    await stage.open("sub", caller=("s", "a"))
    (first,) = (await stage.append(user("do it"), session="sub")).turns
    (second,) = (await stage.append(user("else"), session="sub", after=None)).turns
    again = await stage.append(user("do it"), session="sub", after=None)
    assert (again.turns, again.new, again.head) == ([first], 0, first)
    assert (await stage.line("sub", second))[0].caller is None


async def test_a_caller_that_is_not_here_is_not_found(stage: Stage) -> None:
    """The caller is appended first."""
    with pytest.raises(NotFound, match="no session 'nobody'"):
        await stage.append(user("task", caller=CallerRef(session="nobody", turn="x")))
    assert stage.sql("SELECT count(*) FROM turn") == [(0,)]


@pytest.mark.parametrize("expect", ["a", "nobody"])
async def test_a_wrong_expectation_is_stale(stage: Stage, expect: str) -> None:
    """The error names the head that is there; nothing is stored and nothing said."""
    await stage.append("a", "b")
    before = stage.seq
    with pytest.raises(Stale) as caught:
        await stage.append("c", expect=expect)
    assert caught.value.facts["head"] == "b"
    assert stage.seq == before
    assert stage.sql("SELECT count(*) FROM turn") == [(2,)]


async def test_an_expected_absence_is_checked(stage: Stage) -> None:
    """`expect: null` means: no head yet."""
    assert (await stage.append("a", expect=None)).new == 1
    with pytest.raises(Stale) as caught:
        await stage.append("b", expect=None)
    assert caught.value.facts["head"] == "a"
    assert (await stage.append("b", expect="a")).head == "b"


async def test_a_key_replays_the_first_answer(stage: Stage) -> None:
    """Same key, same turns: first ids, head and branch, nothing new, before `expect`."""
    first = await stage.append(user("你好"), assistant("嗨"), key="k")
    await stage.append("later")
    before = stage.seq
    again = await stage.append(user("你好"), assistant("嗨"), key="k", expect="nonsense")
    assert (again.turns, again.head, again.branch) == (first.turns, first.head, first.branch)
    assert (first.new, again.new) == (2, 0)
    assert stage.seq == before
    assert await stage.head() == "later"


async def test_a_key_with_other_turns_is_a_conflict(stage: Stage) -> None:
    """A key names one request of one session."""
    await stage.append(user("one"), key="k")
    with pytest.raises(Conflict, match="'k' was used before"):
        await stage.append(user("two"), key="k")
    assert (await stage.append(user("two"), session="other", key="k")).new == 1


async def test_appending_what_is_there_moves_the_head_there(stage: Stage) -> None:
    """Nothing is new; head and branch end as after a new append."""
    main = (await stage.append("a", "b", "c")).branch
    await stage.append("x", after="a")
    answer = await stage.append("b", "c", after="a")
    assert (answer.new, answer.head, answer.branch, answer.forked) == (0, "c", main, False)
    assert await stage.head() == "c"
    assert sorted(filter(None, await stage.tips())) == ["c", "x"]


async def test_appending_what_is_there_and_more_goes_on(stage: Stage) -> None:
    """The known part is found, the rest is appended to the branch that ends there."""
    main = (await stage.append("a", "b")).branch
    answer = await stage.append("a", "b", "c", after=None)
    assert (answer.new, answer.branch, answer.forked) == (1, main, False)
    forked = await stage.append("a", "d", after=None)
    assert (forked.new, forked.forked) == (1, True)
    assert await stage.path_to() == ["a", "d"]


async def test_the_same_id_with_other_content_is_a_conflict(stage: Stage) -> None:
    """All or none: the turns before it in the request are not stored either."""
    await stage.append("a")
    with pytest.raises(Conflict, match="already here with other content") as caught:
        await stage.append(user("new", "n"), user("other words", "a"))
    assert caught.value.facts["turn"] == "a"
    assert stage.sql("SELECT key FROM turn") == [("a",)]


@pytest.mark.parametrize(
    "changed",
    [
        {"role": "assistant"},
        {"kind": "summary"},
        {"speaker": Speaker(id="u-1")},
        {"text": "WORDS"},
    ],
)
async def test_equality_is_of_role_kind_speaker_and_text(
    stage: Stage, changed: dict[str, Any]
) -> None:
    """Each of the four makes another content; time and metadata do not."""
    given: dict[str, Any] = {"role": "user", "text": "words", "id": "a"}
    await stage.append(TurnIn(**given))
    same = TurnIn(**given, time="2026-08-09T14:02:00Z", metadata={"more": 1})
    assert (await stage.append(same, after=None)).new == 0
    with pytest.raises(Conflict):
        await stage.append(TurnIn(**{**given, **changed}), after=None)


async def test_equal_characters_in_another_form_are_equal(stage: Stage) -> None:
    """Keys and digests are computed over NFC."""
    await stage.append(user("caf\u00e9", "a"))
    assert (await stage.append(user("cafe\u0301", "a"), after=None)).new == 0
    (one,) = (await stage.append(user("caf\u00e9"), after="a")).turns
    (two,) = (await stage.append(user("cafe\u0301"), after="a")).turns
    assert one == two


async def test_hashed_ids_are_stable(stage: Stage) -> None:
    """Place, role, kind, speaker and words make the id; time does not."""
    (first,) = (await stage.append(user("hi", time="2026-01-01T00:00:00Z"))).turns
    assert first == "h-4ae86ed113063ea438c1e7c57d63772a"
    again = await stage.append(user("hi", time="2027-01-01T00:00:00Z"), after=None)
    assert (again.turns, again.new) == ([first], 0)
    (below,) = (await stage.append(user("hi"))).turns
    assert below != first


async def test_two_families_never_share_a_turn_by_text(stage: Stage) -> None:
    """The same words in two sessions are two turns."""
    (one,) = (await stage.append(user("hi"), session="one")).turns
    (two,) = (await stage.append(user("hi"), session="two")).turns
    assert one != two


async def test_two_sessions_of_one_global_namespace_never_share_a_root_by_text(
    stage: Stage,
) -> None:
    """Also where an agent's ids are global, a hash stands for one session's root."""
    for session in ("one", "two"):
        await stage.open(session)
        await stage.write(
            lambda tx: tx.execute("INSERT OR IGNORE INTO namespace VALUES (77, 'claude-code')")
        )
        await stage.write(lambda tx: tx.execute("UPDATE session SET namespace = 77"))
    (one,) = (await stage.append(user("hi"), session="one")).turns
    (two,) = (await stage.append(user("hi"), session="two")).turns
    assert one != two


async def test_a_retired_turn_comes_back_with_its_path(stage: Stage) -> None:
    """A client's append restores; what was settled is parked `restored`, the rest is just owed."""
    await stage.workspace()
    await stage.append("a", "b", "c", "d")
    await stage.settle("a", "b", "c")
    await stage.rewind("a")
    assert stage.retired() == {"b", "c", "d"}
    before = stage.seq
    answer = await stage.append("b", "c")
    assert (answer.new, answer.head, answer.forked) == (0, "c", False)
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new) == ("restore", "a", "c")
    assert stage.retired() == {"d"}
    assert stage.marks() == {
        "a": ("kept", None),
        "b": ("parked", "restored"),
        "c": ("parked", "restored"),
    }
    assert await stage.owes("waiting") == {"b", "c"}


async def test_appending_after_a_retired_turn_restores_it(stage: Stage) -> None:
    """The place to append at may itself be taken back; its path comes back too."""
    await stage.append("a", "b", "c")
    await stage.rewind("a")
    answer = await stage.append("d", after="c")
    assert (answer.head, answer.new) == ("d", 1)
    assert stage.retired() == set()
    assert await stage.path_to() == ["a", "b", "c", "d"]


async def test_a_forgotten_turn_stays_forgotten(stage: Stage) -> None:
    """The append succeeds, says so, and stores no text."""
    await stage.append("a", "b", session="s")
    await stage.delete("s")
    answer = await stage.append("a", user("new", "c"), session="s")
    assert (answer.forgotten, answer.new, answer.head) == (["a"], 1, "c")
    assert stage.sql("SELECT key FROM turn JOIN turn_words ON turn = id") == [("c",)]
    first = (await stage.line("s"))[0]
    assert (first.state, first.text, first.recordable) == ("forgotten", "", False)


async def test_a_forgotten_turn_takes_other_content_too(stage: Stage) -> None:
    """Its words are gone; an append that meets its id does not conflict."""
    await stage.append("a")
    await stage.delete()
    assert (await stage.append(user("other", "a"))).forgotten == ["a"]


async def test_a_partial_is_for_display_only(stage: Stage) -> None:
    """It is no turn, moves nothing, and the append with its id replaces it."""
    await stage.append("a")
    before = stage.seq
    answer = await stage.append(assistant("so f", "p", kind="partial"))
    assert (answer.turns, answer.new, answer.head) == (["p"], 0, "a")
    assert answer.branch == (await stage.branches())[0].branch
    await stage.append(assistant("so far", "p", kind="partial"))
    assert stage.sql("SELECT id, cast(text AS TEXT) FROM partial_turn") == [("p", "so far")]
    assert stage.seq == before
    with pytest.raises(NotFound):
        await stage.append("b", after="p")
    assert (await stage.append(assistant("so far, so good", "p"))).new == 1
    assert stage.sql("SELECT count(*) FROM partial_turn") == [(0,)]
    await stage.append(assistant("late", "p", kind="partial"))
    assert stage.sql("SELECT count(*) FROM partial_turn") == [(0,)]


async def test_partials_among_turns_keep_the_order_of_the_answer(stage: Stage) -> None:
    """The answer names each turn in the order given; the partial one follows the last turn."""
    answer = await stage.append("a", assistant("…", "p", kind="partial"), "b")
    assert (answer.turns, answer.new, answer.head) == (["a", "p", "b"], 2, "b")
    assert stage.sql("SELECT predecessor FROM partial_turn") == [(stage.key("b"),)]


async def test_superseding_a_tip_moves_its_branch(stage: Stage) -> None:
    """Old → new in one row, the head with it; the old turn is retired."""
    main = (await stage.append("a", "b")).branch
    before = stage.seq
    answer = await stage.append(user("better words", "b~2", supersedes="b"))
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new) == ("supersede", "b", "b~2")
    assert (said.head_old, said.head_new) == ("b", "b~2")
    assert (answer.branch, answer.forked, answer.head) == (main, False, "b~2")
    assert stage.retired() == {"b"}
    assert await stage.path_to() == ["a", "b~2"]
    assert (await stage.line())[1].supersedes == "b"
    assert (await stage.append(user("better words", "b~2", supersedes="b"))).new == 0


async def test_a_line_that_supersedes_moves_in_one_row(stage: Stage) -> None:
    """Head and tip go from the replaced turn to the end of the line at once."""
    await stage.append("a", "b")
    before = stage.seq
    await stage.append(user("better", "b~2", supersedes="b"), user("and on", "c"))
    (said,) = stage.moves(before)
    assert (said.old, said.new, said.head_old, said.head_new) == ("b", "c", "b", "c")
    assert await stage.path_to() == ["a", "b~2", "c"]


async def test_superseding_inside_a_branch_forks_and_leaves_the_head(stage: Stage) -> None:
    """Nothing is re-parented; the old turn is retired where it stands."""
    await stage.append("a", "b", "c")
    before = stage.seq
    answer = await stage.append(user("better", "b~2", supersedes="b"))
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new) == ("supersede", None, "b~2")
    assert (answer.head, answer.forked) == ("c", True)
    assert stage.retired() == {"b"}
    assert await stage.path_to() == ["a", "b", "c"]
    assert await stage.path_to(tip="b~2") == ["a", "b~2"]


async def test_superseding_moves_the_other_sessions_that_ended_there(stage: Stage) -> None:
    """Each session's rows carry its own head; the other goes to the new wording, no further."""
    await stage.append("a", "b")
    await stage.open("t", forked_from=("s", "b"))
    before = stage.seq
    await stage.append(user("better", "b~2", supersedes="b"), user("on", "c"))
    said = {move.session: (move.old, move.new, move.head_new) for move in stage.moves(before)}
    assert said == {"s": ("b", "c", "c"), "t": ("b", "b~2", "b~2")}
    assert await stage.head("t") == "b~2"


async def test_superseding_what_is_not_here_is_not_found(stage: Stage) -> None:
    """Wherever it is to be appended."""
    await stage.append("a")
    with pytest.raises(NotFound, match="no turn 'nobody'"):
        await stage.append(user("x", "x", supersedes="nobody"))
    with pytest.raises(NotFound, match="no turn 'nobody'"):
        await stage.append(user("x", "x", supersedes="nobody"), after="a")


async def test_a_retired_turn_under_a_settled_one_is_owed_when_it_comes_back(
    stage: Stage,
) -> None:
    """It was not in the way while it was retired; restored, it gets a mark that says so."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    await stage.append(user("better", "b~2", supersedes="b"))
    await stage.settle("a", "c")
    await stage.checkout("b", restore=True)
    assert stage.marks()["b"] == ("parked", "restored")
    assert await stage.owes() == {"b", "b~2"}


async def test_fences_are_cut_before_the_key_is_computed(stage: Stage) -> None:
    """What memory injected is no part of the turn."""
    fenced = "<turnmark-memory>\nDana likes tea\n</turnmark-memory>"
    (plain,) = (await stage.append(user("hello"), session="a")).turns
    (cut,) = (await stage.append(user(f"{fenced}hello"), session="a", after=None)).turns
    assert plain == cut
    assert (await stage.line("a"))[0].text == "hello"
    await stage.append(user(fenced, "only"), session="b")
    assert not (await stage.line("b"))[0].recordable


async def test_secrets_are_masked_where_they_are_stored(stage: Stage) -> None:
    """The key is computed over the raw text; the disk never sees it."""
    secret = "sk-ant-api03-" + "a1B2c3D4" * 6
    (one,) = (await stage.append(user(f"my key is {secret}"))).turns
    assert (await stage.append(user(f"my key is {secret}"), after=None)).turns == [one]
    (shown,) = await stage.line()
    assert shown.masked
    assert secret not in shown.text
    await stage.restart()
    files = stage.path.parent.iterdir()
    assert not any(secret.encode() in file.read_bytes() for file in files)


async def test_memory_off_stores_nothing(stage: Stage) -> None:
    """Neither turns nor partials nor syncs nor merges."""
    await stage.open(memory="off")
    answer = await stage.append("a", assistant("…", "p", kind="partial"))
    assert (answer.turns, answer.head, answer.new) == ([], None, 0)
    assert (await stage.sync(user("b"))).new == 0
    for table in ("turn", "turn_words", "partial_turn", "branch"):
        assert stage.sql(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_memory_that_is_turned_off_later_keeps_what_it_has(stage: Stage) -> None:
    """The head stays; a merge stores nothing either."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.open(memory="off")
    assert (await stage.append("d")).head == "c"
    with pytest.raises(Refused, match="memory: off"):
        await stage.merge(["b", "c"], user("m", "m"))
    assert stage.sql("SELECT count(*) FROM turn") == [(3,)]


async def test_nothing_to_append_is_refused(stage: Stage) -> None:
    """And no session is opened by it."""
    with pytest.raises(Refused, match="turns is empty"):
        await stage.append()
    assert stage.sql("SELECT count(*) FROM session") == [(0,)]


@pytest.mark.parametrize("name", ["", "x" * 513, "a\nb", "\x00"])
async def test_ids_that_nobody_could_read_are_refused(stage: Stage, name: str) -> None:
    """An id and a session's name are printable and at most 512 bytes."""
    with pytest.raises(Refused):
        await stage.append(user("x", name))
    with pytest.raises(Refused):
        await stage.append("a", session=name)


async def test_content_parts_count_by_their_text(stage: Stage) -> None:
    """Parts of another type are left out."""
    parts = [
        ContentPart(type="text", text="看"),
        ContentPart(type="image"),
        ContentPart(type="text", text="this"),
    ]
    await stage.append(TurnIn(role="user", text=parts, id="a"))
    assert (await stage.line())[0].text == "看\n\nthis"


async def test_what_is_appended_comes_back(stage: Stage) -> None:
    """Words, speaker, time, metadata, place."""
    given = user(
        "Ich bin's 🙂\x00.",
        "a",
        speaker=Speaker(id="u-17", name="Dana"),
        time="2026-08-09T16:02:00.250+02:00",
        metadata={"k": ["v", 1, None]},
    )
    await stage.append(given, *turns("b"))
    first, second = await stage.line()
    assert (first.text, first.speaker, first.metadata) == (
        given.text,
        given.speaker,
        given.metadata,
    )
    assert first.time == "2026-08-09T14:02:00.250Z"
    assert (first.session, first.sessions, first.predecessor) == ("s", ["s"], None)
    assert (second.predecessor, second.state, second.branch) == (
        "a",
        "live",
        (await stage.branches())[0].branch,
    )
