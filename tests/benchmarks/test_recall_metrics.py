"""What `benchmarks/recall` counts."""

from __future__ import annotations

from math import log2
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall import locomo
from recall.asking import Answered, floor_off
from recall.metrics import (
    clustered_interval,
    interval,
    laid_out,
    mean,
    percentile,
    score,
)
from recall.report import summary

from turnmark_memory import ranking

SESSION_OF = {f"t{number}": f"s{number // 10}" for number in range(200)}
TURN_LISTS = st.lists(st.sampled_from(sorted(SESSION_OF)), unique=True)


def one_each(*turns: str) -> list[tuple[str, ...]]:
    """Returns hits that rest on one turn each."""
    return [(turn,) for turn in turns]


def test_lays_hits_out_as_turns_and_counts_none_twice() -> None:
    """A block that cites two turns takes two ranks; a turn seen before takes none."""
    assert laid_out([("t9", "t2"), ("t9",), ("t3",)]) == ["t9", "t2", "t3"]


def test_counts_evidence_by_the_ranks_of_turns() -> None:
    """Two pieces of evidence at ranks 2 and 3 are none of the first and all of the first five."""
    found = score(["t2", "t3"], [("t9", "t2"), ("t9",), ("t3",)], SESSION_OF)
    assert (found["recall@1"], found["recall@5"], found["all@5"], found["mrr"]) == (0, 1, 1, 0.5)
    gained = 1 / log2(3) + 1 / log2(4)
    assert found["ndcg@10"] == pytest.approx(gained / (1 + 1 / log2(3)))


def test_counts_a_part_of_the_evidence_as_its_share() -> None:
    """One of two pieces in the first ten is a recall of one half, any but not all."""
    found = score(["t2", "t30"], one_each("t2", "t5"), SESSION_OF)
    assert (found["recall@10"], found["any@10"], found["all@10"]) == (0.5, 1, 0)


def test_takes_a_first_hit_as_right_if_any_of_its_turns_is() -> None:
    """A block that cites the evidence second is right all the same."""
    found = score(["t2"], [("t9", "t2"), ("t3",)], SESSION_OF)
    assert (found["first"], found["recall@1"]) == (1, 0)


def test_ranks_sessions_by_their_first_turns() -> None:
    """Ten turns of one session are one session: the eleventh turn's is the second."""
    hits = one_each(*(f"t{number}" for number in range(10)), "t15")
    assert score(["t19"], hits, SESSION_OF)["session@10"] == 1
    others = one_each(*(f"t{10 * number}" for number in range(11)))
    assert score(["t101"], others, SESSION_OF)["session@10"] == 0


def test_an_empty_answer_scores_nothing() -> None:
    """Every metric of an empty answer is zero."""
    assert set(score(["t2"], [], SESSION_OF).values()) == {0.0}


@given(TURN_LISTS.filter(bool), TURN_LISTS)
def test_metrics_are_shares_that_grow_with_depth(evidence: list[str], turns: list[str]) -> None:
    """Whatever is returned, a metric lies between 0 and 1 and looking deeper finds no less."""
    found = score(evidence, one_each(*turns), SESSION_OF)
    assert all(0 <= value <= 1 + 1e-9 for value in found.values())
    for name in ("recall", "any", "all"):
        steps = [found[f"{name}@{k}"] for k in (1, 5, 10, 20)]
        assert steps == sorted(steps)


@given(TURN_LISTS.filter(bool))
def test_evidence_in_order_is_perfect(evidence: list[str]) -> None:
    """The evidence itself as the answer has the highest gain and the best first rank."""
    found = score(evidence, one_each(*evidence), SESSION_OF)
    assert found["ndcg@10"] == pytest.approx(1)
    assert (found["mrr"], found["first"], found["session@10"]) == (1, 1, 1)


def test_means_and_percentiles_of_nothing_are_zero() -> None:
    """An empty group has figures, not an error."""
    assert (mean([]), percentile([], 0.95), interval([]), clustered_interval([])) == (
        0,
        0,
        (0, 0),
        (0, 0),
    )


def test_percentiles_take_a_value_that_was_measured() -> None:
    """The 95th percentile of a hundred values is the 96th, the median of three the second."""
    assert percentile(list(range(100)), 0.95) == 95
    assert percentile([3, 1, 2], 0.5) == 2


def test_intervals_hold_the_mean_and_repeat() -> None:
    """The same values give the same interval, around their mean."""
    values = [1.0] * 30 + [0.0] * 10
    low, high = interval(values)
    assert low < mean(values) < high
    assert (low, high) == interval(values)


def test_conversations_are_drawn_whole() -> None:
    """Where conversations differ and their questions don't, only the former make an interval."""
    low, high = clustered_interval([[1.0] * 40, [0.0] * 40])
    assert (low, high) == (0, 1)
    assert clustered_interval([[1.0] * 40, [1.0] * 3]) == (1, 1)


def test_mends_evidence_ids() -> None:
    """Lists in one string are split, stray colons and zeros dropped, unknown turns left out."""
    known = ["D1:2", "D1:3", "D1:4", "D1:5"]
    raw = ["D1:2; D1:3", "D:1:4", "D1:05", "D", "D9:9", "D1:2"]
    assert locomo.clean_evidence(raw, known) == ("D1:2", "D1:3", "D1:4", "D1:5")


def test_reads_a_conversation(tmp_path: Path) -> None:
    """Turns get session, time, speaker and caption; a question without evidence is left out."""
    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"dia_id": "D1:1", "speaker": "Ada", "text": "Look!", "blip_caption": "a kite"},
                {"dia_id": "D1:2", "speaker": "Ben", "text": "Nice."},
            ],
        },
        "qa": [
            {"question": "What did Ada show?", "category": 4, "evidence": ["D1:1"]},
            {"question": "Why?", "category": 3, "evidence": []},
        ],
    }
    file = tmp_path / "locomo.json"
    file.write_bytes(msgspec.json.encode([sample]))
    (corpus,) = locomo.read(file)
    first, second = corpus.turns
    assert (first.text, first.role, second.role) == ("Look! [shares a kite]", "user", "assistant")
    assert first.time.isoformat() == "2023-05-08T13:57:00+00:00"
    assert [(one.id, one.group, one.half) for one in corpus.questions] == [
        ("conv-1#0", "single-hop", "learn")
    ]


def fails_with_the_floor_off() -> None:
    """Fails in the middle of it."""
    with floor_off():
        assert floor() == (0, 0)
        raise ZeroDivisionError


def floor() -> tuple[float, float]:
    """Returns what holds answers back."""
    return ranking.FLOOR, ranking.HIT_SHARE


def test_switches_the_floor_off_and_on_again() -> None:
    """The floor is what it was before, whatever happens meanwhile."""
    before = floor()
    assert min(before) > 0
    with pytest.raises(ZeroDivisionError):
        fails_with_the_floor_off()
    assert floor() == before


def answered(name: str, *, half: str, found: bool | None, corpus: str = "c") -> Answered:
    """Returns an answer that found its evidence, or did not; None where there is none."""
    metrics = None if found is None else score(["t1"], one_each("t1") if found else [], SESSION_OF)
    return msgspec.convert(
        {
            "corpus": corpus,
            "view": "turns",
            "mode": "lexical",
            "id": name,
            "group": "en" if found is not None else "en near",
            "half": half,
            "question": "?",
            "evidence": ["t1"] if found is not None else [],
            "retrieved": [],
            "hits": 0,
            "top_score": None,
            "milliseconds": 2.0,
            "cpu_milliseconds": 1.0,
            "metrics": metrics,
            "unfloored": None if found is None else score(["t1"], one_each("t1"), SESSION_OF),
        },
        Answered,
    )


def test_reports_halves_apart_and_says_what_the_floor_costs() -> None:
    """A half is summed up from its own questions; the floor costs what it hides."""
    everything = [
        answered("a", half="learn", found=True),
        answered("b", half="report", found=False),
        answered("c", half="report", found=True),
        answered("d", half="report", found=None),
    ]
    report = summary(everything, "set", "report")
    row = next(row for row in report.rows if row.group == "en")
    assert (row.questions, row.metrics["recall@10"], row.floor_loss) == (2, 0.5, 0.5)
    (silence,) = report.silences
    assert (silence.group, silence.silent) == ("en near", 1.0)
    assert [row.questions for row in summary(everything, "set", "learn").rows] == [1, 1]
