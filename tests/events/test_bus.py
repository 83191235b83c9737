"""The bus: one order, nothing lost, bounded memory, and nobody who slows the publisher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_events import Bus, CoreRebuilt, Event, Lagged, Subscription, TipMoved
from turnmark_events.errors import Busy, Gone, Refused

AT = "2026-08-09T14:02:00.000Z"


def moved(seq: int, branch: str = "b", *, session: str = "会话") -> TipMoved:
    return TipMoved(
        seq=seq,
        at=AT,
        session=session,
        branch=branch,
        old=f"old-{seq}",
        new=f"new-{seq}",
        head_old=f"head-old-{seq}",
        head_new=f"head-new-{seq}",
        cause="append",
    )


def rebuilt(seq: int) -> CoreRebuilt:
    return CoreRebuilt(seq=seq, at=AT, workspace="w-0", tokens=1, left_out=())


class Table:
    """The event table: a list; `during_read` runs between a query and the arrival of its rows."""

    def __init__(self) -> None:
        self.rows: list[Event] = []
        self.oldest = 0
        self.reads = 0
        self.during_read: Callable[[], None] = lambda: None

    async def replay(self, after: int, limit: int) -> Sequence[Event]:
        """One query of the table."""
        self.reads += 1
        if after + 1 < self.oldest:
            raise Gone("dropped", oldest=self.oldest)
        page = [event for event in self.rows if event.seq > after][:limit]
        self.during_read()
        return page


class Place:
    """A table and its bus, committing and publishing in two steps as the store does."""

    def __init__(self, *, high_water: int = 1000) -> None:
        self.table = Table()
        self.bus = Bus(replay=self.table.replay, high_water=high_water)

    def commit(self, *events: Event) -> None:
        """Puts rows into the table that the bus has not heard of yet."""
        self.table.rows.extend(events)

    def publish(self, *events: Event) -> None:
        """Commits, and publishes all that was committed."""
        self.commit(*events)
        self.bus.publish([e for e in self.table.rows if e.seq > self.bus.last_seq])


async def drained(subscription: Subscription) -> list[Event]:
    """Everything that can be read without waiting for a publisher."""
    seen: list[Event] = []
    while True:
        with anyio.move_on_after(0):
            seen.append(await anext(subscription))
            continue
        return seen


def seqs(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events if not isinstance(event, Lagged)]


@pytest.mark.anyio
async def test_delivers_what_is_published_to_a_waiting_subscriber() -> None:
    """A subscriber that waits is woken by the publish, without a poll."""
    place = Place()
    got: list[Event] = []

    async def read() -> None:
        async with place.bus.subscribe(name="a") as events:
            got.append(await anext(events))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            place.publish(moved(1))
    assert seqs(got) == [1]


@pytest.mark.anyio
async def test_starts_where_it_was_subscribed_even_if_entered_later() -> None:
    """Nothing that happened between `subscribe` and `async with` is missed."""
    place = Place()
    place.publish(moved(1))
    subscription = place.bus.subscribe(name="a")
    place.publish(moved(2))
    async with subscription:
        place.publish(moved(3))
        assert subscription.seq == 1
        assert seqs(await drained(subscription)) == [2, 3]


@pytest.mark.anyio
async def test_filters_by_type_and_session() -> None:
    """Only the asked types of the asked session arrive; events of no session do not."""
    place = Place()
    async with (
        place.bus.subscribe(name="types", types=["CoreRebuilt"]) as by_type,
        place.bus.subscribe(name="session", session="会话") as by_session,
    ):
        place.publish(moved(1), rebuilt(2), moved(3, session="other"), moved(4))
        assert seqs(await drained(by_type)) == [2]
        assert seqs(await drained(by_session)) == [1, 4]


@pytest.mark.parametrize("types", [["TipMoved", "TurnLost"], []])
def test_refuses_unknown_types_and_names_the_known(types: list[str]) -> None:
    """The refusal lists what could have been asked for."""
    with pytest.raises(Refused, match="TipMoved, TipIdle"):
        Place().bus.subscribe(name="a", types=types)


@pytest.mark.anyio
async def test_since_zero_reads_from_the_oldest_kept() -> None:
    """0 never raises Gone: it means whatever the table still has."""
    place = Place()
    place.publish(*(moved(n) for n in range(1, 8)))
    place.table.rows, place.table.oldest = place.table.rows[4:], 5
    async with place.bus.subscribe(name="a", since=0) as events:
        assert seqs(await drained(events)) == [5, 6, 7]


@pytest.mark.anyio
async def test_since_that_is_gone_is_said_on_entering() -> None:
    """A client learns before its first event that it missed some, and what is kept."""
    place = Place()
    place.publish(*(moved(n) for n in range(1, 8)))
    place.table.rows, place.table.oldest = place.table.rows[4:], 5
    with pytest.raises(Gone) as raised:
        async with place.bus.subscribe(name="a", since=2):
            pass
    assert raised.value.facts == {"oldest": 5}
    assert place.bus.statistics().subscribers == ()


@pytest.mark.anyio
async def test_since_from_the_future_is_refused() -> None:
    """A seq of another store would otherwise silence the subscriber for a long time."""
    place = Place()
    place.publish(moved(1))
    with pytest.raises(Refused, match="has not happened"):
        async with place.bus.subscribe(name="a", since=9):
            pass


@pytest.mark.anyio
async def test_since_that_is_committed_but_not_yet_published_is_no_double() -> None:
    """An event that was read from the table is not delivered again when it is published."""
    place = Place()
    place.publish(moved(1))
    place.commit(moved(2))
    async with place.bus.subscribe(name="a", since=0) as events:
        first = seqs(await drained(events))
        async with place.bus.subscribe(name="b", since=2) as later:
            place.publish(moved(3))
            assert seqs(await drained(later)) == [3]
        assert first + seqs(await drained(events)) == [1, 2, 3]


@pytest.mark.anyio
async def test_drops_what_does_not_increase() -> None:
    """An event out of order is dropped and counted, and the order of the others holds."""
    place = Place()
    async with place.bus.subscribe(name="a") as events:
        place.bus.publish([moved(2), moved(2), moved(1), moved(3)])
        assert seqs(await drained(events)) == [2, 3]
    assert place.bus.statistics().out_of_order == 2


@pytest.mark.anyio
async def test_lossless_over_the_bound_is_told_and_reads_on() -> None:
    """The queue never holds more than the bound, and the reader still sees every event."""
    place = Place(high_water=10)
    async with place.bus.subscribe(name="slow") as events:
        place.publish(moved(1))
        assert seqs([await anext(events)]) == [1]
        place.publish(*(moved(n) for n in range(2, 200)))
        assert place.bus.statistics().subscribers[0].queued == 0
        seen = await drained(events)
        assert seen[0] == Lagged(seq=1, at=seen[0].at, last=1)
        assert seqs(seen) == list(range(2, 200))
        assert place.bus.statistics().subscribers[0].lagged == 1
        place.publish(moved(200))
        reads = place.table.reads
        assert seqs(await drained(events)) == [200]
        assert place.table.reads == reads, "live again: the table is not asked"


@pytest.mark.anyio
async def test_disconnect_over_the_bound_raises_and_leaves() -> None:
    """The error names the subscriber and where to resume; the others go on."""
    place = Place(high_water=3)
    async with place.bus.subscribe(name="weak", policy="disconnect") as events:
        place.publish(*(moved(n) for n in range(1, 5)))
        with pytest.raises(Busy, match="'weak' was disconnected") as raised:
            await anext(events)
    assert raised.value.facts == {"last": 0}
    assert place.bus.statistics().subscribers == ()


@pytest.mark.anyio
async def test_coalesces_moves_of_one_branch_and_nothing_else() -> None:
    """First `old`, last `new`, at the back; other branches and types keep their place."""
    place = Place()
    async with place.bus.subscribe(name="a", policy="coalesce") as events:
        place.publish(moved(1, "x"), moved(2, "y"), rebuilt(3), moved(4, "x"), rebuilt(5))
        seen = await drained(events)
    assert seqs(seen) == [2, 3, 4, 5]
    merged = seen[2]
    assert isinstance(merged, TipMoved)
    assert (merged.old, merged.new) == ("old-1", "new-4")
    assert (merged.head_old, merged.head_new) == ("head-old-1", "head-new-4")


@pytest.mark.anyio
async def test_close_ends_a_waiting_reader() -> None:
    """Closing from elsewhere ends the iteration instead of leaving it asleep."""
    place = Place()
    subscription = place.bus.subscribe(name="a")

    async def read() -> None:
        async with subscription:
            assert [event async for event in subscription] == []

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            subscription.close()


@pytest.mark.anyio
async def test_gone_while_behind_ends_the_iteration() -> None:
    """What the table dropped before it was read is said, not skipped."""
    place = Place(high_water=2)
    async with place.bus.subscribe(name="a") as events:
        place.publish(*(moved(n) for n in range(1, 9)))
        place.table.rows, place.table.oldest = place.table.rows[5:], 6
        assert isinstance(await anext(events), Lagged)
        with pytest.raises(Gone):
            await anext(events)


# One step of a random interleaving: what is committed, whether it is published, how much is read.
_KINDS = st.sampled_from(["x", "y", "z", "core"])
_STEPS = st.lists(
    st.tuples(st.lists(_KINDS, max_size=6), st.booleans(), st.integers(0, 5)),
    max_size=25,
)


class Chain:
    """Makes events whose moves continue each other, as the gate does."""

    def __init__(self) -> None:
        self.seq = 0
        self.tips: dict[str, str | None] = {}

    def event(self, kind: str) -> Event:
        """The next event of a branch, or a rebuilt core."""
        self.seq += 1
        if kind == "core":
            return rebuilt(self.seq)
        old, new = self.tips.get(kind), f"t{self.seq}"
        self.tips[kind] = new
        return TipMoved(
            seq=self.seq,
            at=AT,
            session="s",
            branch=kind,
            old=old,
            new=new,
            head_old=old,
            head_new=new,
            cause="append",
        )


async def interleave(
    place: Place,
    chain: Chain,
    subscription: Subscription,
    steps: Sequence[tuple[list[str], bool, int]],
) -> list[Event]:
    """Runs the steps, half of them inside reads of the table, and reads to the end."""
    inside = list(steps[::2])

    def commit(step: tuple[list[str], bool, int]) -> None:
        place.commit(*(chain.event(kind) for kind in step[0]))
        if step[1]:
            place.publish()

    place.table.during_read = lambda: commit(inside.pop()) if inside else None
    seen: list[Event] = []
    for step in steps[1::2]:
        commit(step)
        for _ in range(step[2]):
            with anyio.move_on_after(0):
                seen.append(await anext(subscription))
        queued = subscription.statistics().queued
        assert queued <= 3, f"{queued} events in memory"
    place.publish()
    seen += await drained(subscription)
    place.table.during_read = lambda: None
    place.publish()
    return seen + await drained(subscription)


def assert_increasing(events: Sequence[Event]) -> None:
    order = seqs(events)
    assert order == sorted(set(order))
    last = 0
    for event in events:
        if isinstance(event, Lagged):
            assert event.seq == event.last == last
        last = event.seq


@settings(max_examples=150, deadline=None)
@given(steps=_STEPS, types=st.sampled_from([None, ["CoreRebuilt"], ["TipMoved"]]))
def test_lossless_sees_exactly_the_filtered_sequence(
    steps: list[tuple[list[str], bool, int]], types: list[str] | None
) -> None:
    """However publishing, reading and falling behind interleave, nothing is lost or doubled."""

    async def run() -> None:
        place, chain = Place(high_water=3), Chain()
        async with place.bus.subscribe(name="a", types=types) as events:
            seen = await interleave(place, chain, events, steps)
        assert_increasing(seen)
        wanted = [e for e in place.table.rows if types is None or type(e).__name__ in types]
        assert [e for e in seen if not isinstance(e, Lagged)] == wanted

    anyio.run(run)


@settings(max_examples=150, deadline=None)
@given(steps=_STEPS)
def test_coalesced_moves_chain_without_a_hole(steps: list[tuple[list[str], bool, int]]) -> None:
    """Per branch each delivered `old` is the `new` before it, up to the true tip."""

    async def run() -> None:
        place, chain = Place(high_water=3), Chain()
        async with place.bus.subscribe(name="a", policy="coalesce") as events:
            seen = await interleave(place, chain, events, steps)
        assert_increasing(seen)
        rest = [e for e in place.table.rows if isinstance(e, CoreRebuilt)]
        assert [e for e in seen if isinstance(e, CoreRebuilt)] == rest
        tips: dict[str, str | None] = {}
        for event in seen:
            if isinstance(event, TipMoved):
                assert event.old == tips.get(event.branch) == event.head_old
                tips[event.branch] = event.new
        assert tips == chain.tips

    anyio.run(run)
