"""The workspace on disk: its layout, its identity, its names."""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.file_names import NAME_LIMIT_BYTES, safe_name
from turnmark_memory.workspace import RevisionStamp, UnreadableRevision, Workspace
from turnmark_session_store.place_lock import PlaceTaken


def test_is_created_whole_and_private(tmp_path: Path) -> None:
    """Every directory of the layout is there, 0700, and the files are 0600."""
    root = tmp_path / "memory"
    with Workspace.open(root) as workspace:
        assert re.fullmatch(r"w-[0-9a-f]{16}", workspace.id)
    for path in ("topics/people", "topics/projects", "topics/subjects", "sources", "timeline"):
        assert (root / path).stat().st_mode & 0o777 == 0o700
    for path in (".turnmark/workspace.json", ".turnmark/lock"):
        assert (root / path).stat().st_mode & 0o777 == 0o600


def test_keeps_its_identity(tmp_path: Path) -> None:
    """The id is made once and is the same at every later start."""
    with Workspace.open(tmp_path) as first:
        identity = first.id
    with Workspace.open(tmp_path) as second:
        assert second.id == identity


def test_never_replaces_an_identity_it_cannot_read(tmp_path: Path) -> None:
    """A damaged identity stops the start, and frees the lock again."""
    Workspace.open(tmp_path).close()
    file = tmp_path / ".turnmark" / "workspace.json"
    for damage in (b"", b"{", b'{"workspace": "../x", "created_at": "2026-01-01T00:00:00Z"}'):
        file.write_bytes(damage)
        with pytest.raises(Unavailable, match="doctor"):
            Workspace.open(tmp_path)
        assert file.read_bytes() == damage


def test_has_one_holder(tmp_path: Path) -> None:
    """A second daemon on the same workspace is told who has it."""
    with Workspace.open(tmp_path), pytest.raises(PlaceTaken, match=str(os.getpid())):
        Workspace.open(tmp_path)
    Workspace.open(tmp_path).close()


def test_revision_goes_from_zero_to_what_was_written(tmp_path: Path) -> None:
    """A workspace without an install has revision 0."""
    stamp = RevisionStamp(revision=7, at=datetime(2026, 8, 9, 14, 2, tzinfo=UTC))
    with Workspace.open(tmp_path) as workspace:
        assert workspace.revision() == RevisionStamp(revision=0, at=None)
        workspace.write_revision(stamp)
        assert workspace.revision() == stamp


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", b'{"revision": -1, "at": null}'])
def test_unreadable_revision_is_a_result(tmp_path: Path, damage: bytes) -> None:
    """The caller gets a value to act on: it reprocesses and says so."""
    with Workspace.open(tmp_path) as workspace:
        (tmp_path / ".turnmark" / "revision.json").write_bytes(damage)
        assert isinstance(workspace.revision(), UnreadableRevision)


def test_revision_that_is_a_link_is_unreadable(tmp_path: Path) -> None:
    """A link inside the workspace is not followed, here neither."""
    with Workspace.open(tmp_path) as workspace:
        (tmp_path / ".turnmark" / "revision.json").symlink_to("/etc/hostname")
        assert isinstance(workspace.revision(), UnreadableRevision)


def test_layout_with_a_link_in_it_is_refused(tmp_path: Path) -> None:
    """A folder of the layout that leads elsewhere is not followed, and nothing is put there."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "memory"
    root.mkdir()
    (root / "topics").symlink_to(elsewhere)
    with pytest.raises(Refused, match="symbolic link"):
        Workspace.open(root)
    assert list(elsewhere.iterdir()) == []


def test_root_may_be_a_link(tmp_path: Path) -> None:
    """Where the workspace lies is the user's choice."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Workspace.open(tmp_path / "link").close()
    assert (tmp_path / "real" / "topics" / "people").is_dir()


def test_topics_lists_regular_files_only(tmp_path: Path) -> None:
    """Links, directories named like topics and hidden files are no topics."""
    with Workspace.open(tmp_path) as workspace:
        topics = tmp_path / "topics"
        for name in ("core.md", "people/Dana.md", "people/王芳.md", "people/notes.txt"):
            (topics / name).write_text("x")
        (topics / "people" / "deep").mkdir()
        (topics / "people" / "deep" / "er.md").write_text("x")
        (topics / "people" / "dir.md").mkdir()
        (topics / "people" / ".hidden.md").write_text("x")
        (topics / "people" / "link.md").symlink_to("Dana.md")
        (topics / "loop").symlink_to(topics)
        os.mkfifo(topics / "fifo.md")
        found = [topic.topic for topic in workspace.topics()]
        assert found == ["core", "people/Dana", "people/deep/er", "people/王芳"]


def test_topic_has_one_file_for_all_its_spellings(tmp_path: Path) -> None:
    """Case twins and twins of Unicode form lead to the file that is there."""
    with Workspace.open(tmp_path) as workspace:
        people = tmp_path / "topics" / "people"
        there = unicodedata.normalize("NFD", "José.md")
        (people / there).write_text("x")
        assert workspace.topic_file("people/josé") == f"topics/people/{there}"
        assert workspace.topic_file("PEOPLE/José") == f"topics/people/{there}"
        assert workspace.topic_file("people/王芳") == "topics/people/王芳.md"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "../x",
        "people/..",
        "/etc/passwd",
        "people//x",
        "people/.git",
        "people/a\\b",
        "people/x ",
        "people/x.",
        "people/a\nb",
        "people/a\0b",
        "people/\u202eevil",
        "people/con",
        "people/a#b",
        "people/" + "长" * 100,
    ],
)
def test_unsafe_topic_is_refused(tmp_path: Path, topic: str) -> None:
    """No such name becomes a path."""
    with Workspace.open(tmp_path) as workspace, pytest.raises(Refused):
        workspace.topic_file(topic)


@pytest.mark.parametrize("name", ["sess-1", "3b1f", "会话一", "a.b_c", "0198c0de-aaaa-bbbb"])
def test_harmless_name_is_kept(name: str) -> None:
    """A session with an ordinary name is found under it."""
    assert safe_name(name) == name


_TWINS = [
    ("Sess", "sess"),
    ("é", "e\u0301"),
    ("ß", "ss"),
    ("a/b", "a_b"),
    ("a/b", "a\\b"),
    ("con", "con_"),
    ("x" * 300, "x" * 301),
    ("x.", "x"),
    ("ﬁ", "fi"),
]


@pytest.mark.parametrize(("one", "other"), _TWINS)
def test_twins_get_two_files_on_every_file_system(one: str, other: str) -> None:
    """Also where the file system ignores case or Unicode form."""

    def seen(name: str) -> str:
        return unicodedata.normalize("NFC", safe_name(name).casefold())

    assert seen(one) != seen(other)


def test_suffixed_name_can_not_be_forged() -> None:
    """A name that looks like the safe name of another gets one of its own."""
    made = safe_name("A/B")
    assert safe_name(made) != made


@settings(deadline=None)
@given(st.text(), st.text())
def test_safe_name_is_safe_and_injective(one: str, other: str) -> None:
    """Any string becomes one component of at most 200 bytes; two strings become two."""
    safe = safe_name(one)
    assert safe not in {"", ".", ".."}
    assert safe[0] not in ".-"
    assert not set(safe) & set("/\\\0\n:")
    assert len(safe.encode()) <= NAME_LIMIT_BYTES
    assert (one == other) == (safe == safe_name(other))


def test_source_files_are_found_again(tmp_path: Path) -> None:
    """What source_file names is listed by source_files; nothing leaves the folder."""
    with Workspace.open(tmp_path) as workspace:
        path = workspace.source_file("../claude", "../../etc/passwd")
        assert path.startswith("sources/")
        assert ".." not in path.split("/")
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("{}\n")
        assert [found for found, _ in workspace.source_files()] == [path]


def test_odd_files_are_refused_by_name(tmp_path: Path) -> None:
    """The error names the path and what to do; what is there is untouched."""
    with Workspace.open(tmp_path) as workspace:
        people = tmp_path / "topics" / "people"
        (people / "dir.md").mkdir()
        os.mkfifo(people / "fifo.md")
        (people / "link.md").symlink_to("/etc/hostname")
        (people / "loop.md").symlink_to("loop.md")
        (people / "shut.md").write_text("x")
        (people / "shut.md").chmod(0)
        for name in ("dir", "fifo", "link", "loop"):
            with pytest.raises(Refused, match=f"people/{name}.md"):
                workspace.tree.read(f"topics/people/{name}.md")
        with pytest.raises(Unavailable, match=r"people/shut\.md can't be read.*chmod"):
            workspace.tree.read("topics/people/shut.md")
        assert workspace.tree.read("topics/people/absent.md") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """A hard link to another user's file must not become a topic."""
    with Workspace.open(tmp_path) as workspace:
        file = tmp_path / "topics" / "people" / "other.md"
        file.write_text("x")
        os.chown(file, 12345, 12345)
        with pytest.raises(Refused, match="another user"):
            workspace.tree.read("topics/people/other.md")
