"""The workspace's files beside a real daemon: what is derived, what fits, what a person is told."""

from __future__ import annotations

import importlib.resources
import shutil
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark.client_sync import SyncClient
from turnmark.commands.demo import Conversation
from turnmark_memory.tokens import load_counter

QUERIES = ("头盔", "card payments", "Lena", "Bergen", "spare key", "钥匙", "German", "发货")
CORE = "topics/core.md"


def derived(place: DaemonPlace) -> dict[str, bytes]:
    """The core page and the timeline, by path."""
    files = [*place.workspace.glob("timeline/**/*.md"), place.workspace / "core.md"]
    return {str(file.relative_to(place.workspace)): file.read_bytes() for file in files}


def recalled(memory: SyncClient) -> list[Any]:
    """All that memory says to every query, with scores and sources."""
    return [list(memory.recall(query, k=20)) for query in QUERIES]


def without_derived(place: DaemonPlace, *, also: str = "index.db*") -> None:
    """Deletes the index, the core page and the timeline."""
    shutil.rmtree(place.workspace / "timeline")
    (place.workspace / "core.md").unlink()
    for file in (place.workspace / ".turnmark").glob(also):
        file.unlink()


def play_demo(memory: SyncClient) -> None:
    """Says what the demo says, and lets it be written."""
    packed = importlib.resources.files("turnmark") / "demo_conversation.json"
    for step in msgspec.json.decode(packed.read_bytes(), type=Conversation).steps:
        memory.call(step.method, step.params)
    memory.flush()


def change_much(memory: SyncClient) -> None:
    """Changes blocks on purpose, in every way that leaves a trace."""
    said = memory.remember("The spare key hangs in the shed. 备用钥匙在棚里。", pin=True)
    core: dict[str, Any] = {"op": "add", "topic": "core", "text": "Answer in German.", "cites": []}
    memory.edit([core])
    one, two, three, *_ = [hit["ref"] for hit in memory.recall("Robin", kinds=["block"], k=10)]
    moved = memory.edit([{"op": "move", "block": one, "topic": "projects/kiosk", "heading": "店"}])
    memory.edit([{"op": "pin", "block": two}])
    memory.edit([{"op": "retire", "block": three, "reason": "wrong", "successor": two}])
    memory.edit([{"op": "merge", "blocks": [said["block"], one], "text": "Robin, 和钥匙。"}])
    memory.undo(memory.history(limit=1)["revisions"][0]["revision"])
    assert moved["blocks"] == [one]


def edit_by_hand(place: DaemonPlace, words: str) -> None:
    """Saves a topic with one more paragraph above its footnotes."""
    file = place.workspace / "topics" / "projects" / "kiosk.md"
    head, mark, tail = file.read_text(encoding="utf-8").partition("## 店\n")
    file.write_text(f"{head}{words}\n\n{mark}{tail}", encoding="utf-8")


async def _found(
    place: DaemonPlace, holds: Callable[[Any], bool], method: str, **params: Any
) -> Any:
    """Asks after each rebuilt core page until the answer holds."""
    async with place.connect() as memory, memory.subscribe(types=["CoreRebuilt"]) as events:
        answer = await memory.call(method, params)
        with anyio.fail_after(60):
            while not holds(answer):
                await anext(events)
                answer = await memory.call(method, params)
        return answer


@pytest.mark.parametrize("also", ["index.db*", "*.db*"])
def test_derived_files_of_the_demo_and_many_edits_come_back_byte_for_byte(also: str) -> None:
    """Index, core page and timeline deleted of a stopped daemon; recall says the same."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        with place.connect_sync() as memory:
            play_demo(memory)
            change_much(memory)
        place.stop()
        edit_by_hand(place, "The kiosk has a blue door. 蓝色的门。")
        place.start()
        with place.connect_sync() as memory:
            assert memory.recall("blue door", kinds=["block"])[0]["topic"] == "projects/kiosk"
            answers, core = recalled(memory), memory.core()
        place.stop()
        kept = derived(place)
        assert len(kept) >= 2
        without_derived(place, also=also)
        place.start()
        with place.connect_sync() as memory:
            assert derived(place) == kept
            assert memory.core() == core
            assert recalled(memory) == answers
        assert not place.logged("workspace_went_back")


def test_edits_made_while_it_was_down_are_on_the_core_page_when_it_is_ready() -> None:
    """Whether the derived files are there or not: they are made after the edits were taken in."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        with place.connect_sync() as memory:
            play_demo(memory)
            change_much(memory)
        place.stop()
        file = place.workspace / CORE
        text = file.read_text(encoding="utf-8").replace("Answer in German.", "用中文回答。")
        file.write_text(text, encoding="utf-8")
        edit_by_hand(place, "The kiosk has a blue door.")
        place.start()
        with place.connect_sync() as memory:
            page = (place.workspace / "core.md").read_text(encoding="utf-8")
            assert "用中文回答。" in page
            assert "German" not in page
            assert "blue door" in page
            assert memory.core()["text"] == page
            (hit,) = [
                hit for hit in memory.recall("回答", kinds=["block"]) if hit["topic"] == "core"
            ]
            assert hit["text"] == "用中文回答。"
        place.stop()
        file.write_text(text.replace("用中文回答。", "Answer in Polish."), encoding="utf-8")
        without_derived(place)
        place.start()
        page = (place.workspace / "core.md").read_text(encoding="utf-8")
        assert page.count("Answer in Polish.") == 1
        assert "用中文回答。" not in page
        with place.connect_sync() as memory:
            memory.call("memory.organize")  # it may arrange what is below the line anew
        again = (place.workspace / "core.md").read_text(encoding="utf-8")
        assert sorted(again.splitlines()) == sorted(page.splitlines())


def test_core_page_keeps_its_budget_to_the_token_and_says_what_it_left_out() -> None:
    """A pin comes before what is automatic; a budget of one token less shows one block less."""
    counter = load_counter()
    with daemon_place(idle_minutes=60, config="core_tokens = 150\n") as place:
        place.start()
        with place.connect_sync() as memory:
            play_demo(memory)
            core = memory.core()
            left_out = core["left_out"]
            assert left_out
            memory.edit([{"op": "pin", "block": left_out[-1]}])
            pinned = memory.core()
        place.stop()
        assert left_out[-1] not in core["blocks"]
        assert pinned["blocks"][0] == left_out[-1]
        assert {*pinned["blocks"], *pinned["left_out"]} == {*core["blocks"], *left_out}
        file = place.workspace / "core.md"
        assert file.read_text(encoding="utf-8") == pinned["text"]
        assert pinned["tokens"] == counter.count(pinned["text"]) <= 150
        for budget_tokens, shown in ((pinned["tokens"], True), (pinned["tokens"] - 1, False)):
            place.configure(idle_minutes=60, more=f"core_tokens = {budget_tokens}\n")
            place.start()
            with place.connect_sync() as memory:
                page = memory.core()
            place.stop()
            assert (page["text"] == pinned["text"]) is shown
            assert page["tokens"] == counter.count(file.read_text(encoding="utf-8"))
            assert page["tokens"] <= budget_tokens
            assert {*page["blocks"], *page["left_out"]} == {*core["blocks"], *left_out}


@pytest.mark.anyio
async def test_status_tells_what_is_broken_in_a_topic_by_its_line() -> None:
    """Duplicate ids, a label without a source, a topic that is a directory; service goes on."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with place.connect() as memory:
            await memory.append("s", role="user", text="I keep two bees in the garden.")
            await memory.flush()
        (place.workspace / "topics/projects/dir.md").mkdir(parents=True)
        odd = place.workspace / "topics/subjects/odd.md"
        odd.parent.mkdir(exist_ok=True)
        odd.write_text(
            "# Odd\n\nOne. ^b-11111111\n\nTwo. ^b-11111111\n\nThree.[^s-000000000000] ^b-22222222\n"
        )

        def told(status: Any) -> bool:
            said = "\n".join(status["what_to_do"])
            return "odd.md:7: the footnote s-000000000000" in said and "odd.md:5: " in said

        status = await _found(place, told, "status")
        assert any("topics/projects/dir.md: " in line for line in status["what_to_do"]), status
        async with place.connect() as memory:
            texts = [hit["text"] for hit in await memory.recall("bees", kinds=["block"])]
            assert len(texts) == 1
            assert [hit["text"] for hit in await memory.recall("Three", kinds=["block"])] == [
                "Three."
            ]
