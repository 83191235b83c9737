"""Says what was measured: one summary per set, view and half, as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from recall.asking import Answered
from recall.locomo import HEADLINE
from recall.metrics import Metrics, clustered_interval, interval, mean, percentile

SHOWN = ("recall@1", "recall@5", "recall@10", "any@10", "session@10", "first", "mrr")
Interval = tuple[float, float]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The means of a group of questions that have an answer.

    `interval` is of `recall@10`, `first_interval` of `first`; `by_conversation` draws conversations
    anew in place of questions. `floor_loss` is what `recall@10` would gain without the floor.
    """

    group: str
    questions: int
    metrics: Metrics
    interval: Interval
    first_interval: Interval
    by_conversation: Interval | None
    floor_loss: float


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """The share of a group of unanswerable questions that were answered with nothing."""

    group: str
    questions: int
    silent: float
    interval: Interval


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One set asked in one way: a half of it, or all of it."""

    corpus: str
    view: str
    mode: str
    half: str
    rows: tuple[Row, ...]
    silences: tuple[Silence, ...]
    p50_ms: float
    p95_ms: float
    cpu_ms: float


def summary(answered: Sequence[Answered], corpus: str, half: str) -> Summary:
    """Returns the summary of answers that come from one set, view and mode."""
    chosen = [one for one in answered if half in ("all", one.half)]
    times = [one.milliseconds for one in chosen]
    return Summary(
        corpus=corpus,
        view=answered[0].view,
        mode=answered[0].mode,
        half=half,
        rows=tuple(_rows(chosen)),
        silences=tuple(_silences(chosen)),
        p50_ms=percentile(times, 0.5),
        p95_ms=percentile(times, 0.95),
        cpu_ms=mean([one.cpu_milliseconds for one in chosen]),
    )


def lines(found: Summary) -> Iterator[str]:
    """Yields a summary as lines of text; shares are in percent."""
    yield f"{found.corpus}, {found.view}, {found.mode}, {found.half}"
    if found.rows:
        yield (
            f"  {'':<16}{'n':>6}"
            + "".join(f"{name:>12}" for name in SHOWN)
            + ("   recall@10, 95 %      first, 95 %  floor costs")
        )
    for row in found.rows:
        shown = "".join(f"{100 * row.metrics[name]:>12.1f}" for name in SHOWN)
        yield (
            f"  {row.group:<16}{row.questions:>6}{shown}   {_span(row.interval):>15}"
            f"  {_span(row.first_interval):>15}  {100 * row.floor_loss:>11.1f}"
        )
        if row.by_conversation is not None:
            yield f"  {'':<16}{'':>6} recall@10 by conversation: {_span(row.by_conversation)}"
    for silence in found.silences:
        yield (
            f"  {silence.group:<16}{silence.questions:>6}  answered with nothing: "
            f"{100 * silence.silent:.1f}  ({_span(silence.interval)})"
        )
    yield (
        f"  a recall of 10 hits: p50 {found.p50_ms:.1f} ms, p95 {found.p95_ms:.1f} ms, "
        f"of CPU {found.cpu_ms:.1f} ms"
    )


def _rows(answered: Sequence[Answered]) -> Iterator[Row]:
    scored = [one for one in answered if one.metrics is not None]
    groups = list(dict.fromkeys(one.group for one in scored))
    if headline := [one for one in scored if one.group in HEADLINE]:
        yield _row("categories 1-4", headline)
    elif monolingual := [one for one in scored if one.group in ("en", "zh")]:
        yield _row("en and zh", monolingual)
    for group in sorted(groups):
        yield _row(group, [one for one in scored if one.group == group])


def _row(group: str, answered: Sequence[Answered]) -> Row:
    recall = _values(answered, lambda one: one.metrics, "recall@10")
    conversations = list(dict.fromkeys(one.corpus for one in answered))
    clusters = [
        _values([a for a in answered if a.corpus == name], lambda one: one.metrics, "recall@10")
        for name in conversations
    ]
    names = answered[0].metrics or {}
    return Row(
        group=group,
        questions=len(answered),
        metrics={name: mean(_values(answered, lambda one: one.metrics, name)) for name in names},
        interval=interval(recall),
        first_interval=interval(_values(answered, lambda one: one.metrics, "first")),
        by_conversation=clustered_interval(clusters) if len(clusters) > 1 else None,
        floor_loss=mean(_values(answered, lambda one: one.unfloored, "recall@10")) - mean(recall),
    )


def _silences(answered: Sequence[Answered]) -> Iterator[Silence]:
    unanswerable = [one for one in answered if not one.evidence]
    groups = sorted({one.group for one in unanswerable})
    if len(groups) > 1:
        yield _silence("unanswerable", unanswerable)
    for group in groups:
        yield _silence(group, [one for one in unanswerable if one.group == group])


def _silence(group: str, answered: Sequence[Answered]) -> Silence:
    silent = [float(one.hits == 0) for one in answered]
    return Silence(
        group=group, questions=len(answered), silent=mean(silent), interval=interval(silent)
    )


def _values(
    answered: Sequence[Answered], of: Callable[[Answered], Metrics | None], name: str
) -> list[float]:
    return [metrics[name] for one in answered if (metrics := of(one)) is not None]


def _span(found: Interval) -> str:
    return f"{100 * found[0]:.1f} to {100 * found[1]:.1f}"
