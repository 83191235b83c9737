"""English told in the third person, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.writers.english_voice import Speaker, retold, third_person

ROBIN = Speaker("Robin", in_project=False)
USER = Speaker("the user", in_project=True)

TOLD = (
    ("I moved from Oslo to Bergen.", "Robin moved from Oslo to Bergen."),
    ("I live in Oslo and work as a nurse.", "Robin lives in Oslo and works as a nurse."),
    ("I moved to Porto and rent a flat.", "Robin moved to Porto and rents a flat."),
    ("I walked to the lake and love it.", "Robin walked to the lake and loves it."),
    ("I'm vegetarian.", "Robin is vegetarian."),
    ("I've been a nurse since 2020.", "Robin has been a nurse since 2020."),
    ("I'll bring the tent on Friday.", "Robin will bring the tent on Friday."),
    ("I'd like to learn Spanish.", "Robin would like to learn Spanish."),
    ("I don't like ORMs.", "Robin doesn't like ORMs."),
    ("I really dislike ORMs.", "Robin really dislikes ORMs."),
    ("I can't lift heavy stuff.", "Robin can't lift heavy stuff."),
    ("I carry my kid to school.", "Robin carries their kid to school."),
    ("My sister Lena lives in Lisbon.", "Robin's sister Lena lives in Lisbon."),
    ("I have a dog, and my sister hates it.", "Robin has a dog, and their sister hates it."),
    ("Dana and I went to Porto.", "Dana and Robin went to Porto."),
    ("My boss gave me a raise.", "Robin's boss gave them a raise."),
    ("We went camping in June.", "Robin and others went camping in June."),
    ("The quartet wants 550 now.", "The quartet wants 550 now."),
)
IN_A_PROJECT = (
    ("We decided to use Postgres.", "The team decided to use Postgres."),
    ("Our staging server runs on port 8443.", "The staging server runs on port 8443."),
    ("I think we should use Redis.", "The user thinks the team should use Redis."),
    ("We're dropping Windows 7.", "The team is dropping Windows 7."),
)
QUOTED = (
    "I told you that I prefer tea.",
    "I put it on the shelf.",
    "Really made me think about it.",
    "Gonna continue my studies in May.",
    "It's my favourite place.",
    'I like what they call "my" bridge.',
    "Keys on July 25.",
    "will call them tomorrow",
    "I am, home office.",
    "I carve out some me-time each day.",
    "I want to live in Oslo and work as a nurse.",
    "So do I.",
    "Each of us takes a week.",
    "",
)


@pytest.mark.parametrize(("said", "told"), TOLD)
def test_tells_of_a_speaker(said: str, told: str) -> None:
    """First-person words become the speaker's name, and the verbs agree."""
    assert retold(said, ROBIN) == told


@pytest.mark.parametrize(("said", "told"), IN_A_PROJECT)
def test_tells_of_a_team(said: str, told: str) -> None:
    """In a project "we" are the team and "our" things are the project's."""
    assert retold(said, USER) == told


@pytest.mark.parametrize("said", QUOTED)
def test_leaves_what_is_not_safe(said: str) -> None:
    """Somebody addressed, a dropped subject, a verb of two tenses: the caller has to quote."""
    assert retold(said, ROBIN) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("He's on the data team now.", "Devraj is on the data team now."),
        ("He's been ill.", "Devraj has been ill."),
        ("She needs the export.", "Devraj needs the export."),
        ("Her email is d@x.example.", "Devraj's email is d@x.example."),
    ],
)
def test_names_whom_a_pronoun_means(said: str, told: str) -> None:
    """The name takes the pronoun's place; "he's" is or has."""
    end = len(said.split(" ", 1)[0])
    assert third_person("Devraj", said, 0, end) == told


@given(st.text() | st.text("I my we'mve are go, and. N"))
def test_never_raises_and_leaves_no_first_person(text: str) -> None:
    """Whatever is told, nobody in it is "I"."""
    told = retold(text, ROBIN)
    assert told is None or " I " not in f" {told} "
