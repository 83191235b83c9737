"""Help is whole: each command has its page, and what help shows can be typed."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from turnmark.commands import import_, manual, registry
from turnmark.commands.completion import COMPLETED, bash_script, fish_script
from turnmark.commands.parser import common, parse, parser_of
from turnmark_session_store.transcripts import weclaw
from turnmark_session_store.transcripts.recognise import EXPORT_AGENT


@pytest.mark.parametrize("name", registry.names())
def test_a_command_has_a_page_with_examples_that_parse(name: str) -> None:
    """Every example is a command line that is understood."""
    page = manual.page_of(name)
    assert page.about.endswith((".", "`", "'"))
    assert page.examples
    for typed, _why in page.examples:
        program, command, *words = shlex.split(typed.removeprefix("source <(").rstrip(")"))
        assert program == "turnmark"
        options = parse(common("turnmark", []), [], argparse.Namespace())
        parse(parser_of(command)[0], words, options)


def test_the_list_of_commands_has_each_once() -> None:
    """By what they are for."""
    listed = [name for names in registry.groups().values() for name in names]
    assert sorted(listed) == sorted(set(registry.names()))


def test_an_agent_is_offered_exactly_where_it_can_be_imported() -> None:
    """What `import --agent` takes are the readers, weclaw, which says why not, and exports."""
    read = {reader.agent for reader in import_.readers()}
    assert set(import_.AGENTS) == {*read, weclaw.AGENT, EXPORT_AGENT}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["reca"], {"recall"}),
        (["--state", "/there", "vers"], {"version"}),
        (["recall", "--mo"], {"--mode"}),
        (["recall", "--mode", ""], {"hybrid", "lexical", "dense", "select"}),
        (["append", "s", "x", "--role", "a"], {"assistant"}),
        (["setup", "s"], {"service"}),
        (["help", "rest"], {"restore"}),
        (["recall", "--topic", "-"], set()),
        (["import", "nowhere"], set()),
    ],
)
def test_bash_completes(words: list[str], offered: set[str]) -> None:
    """Commands, options and the words that an option takes."""
    given = shlex.join(["turnmark", *words])
    script = f"{bash_script()}\nCOMP_WORDS=({given})\nCOMP_CWORD={len(words)}\n"
    script += 'set -u\n_turnmark\nprintf "%s\\n" "${COMPREPLY[@]:-}"\n'
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert (set(done.stdout.split()), done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_runs_no_name_that_it_completes(tmp_path: Path) -> None:
    """Sessions are called what other programs, and what they read, call them."""
    names = ("sess-1", "$(touch${IFS}ran)", "`touch${IFS}ran`", "a'b", 'a"b', "sess-2#u1")
    (tmp_path / "list").write_text("\n".join(f"{one}  pi  3" for one in ("SESSION", *names)))
    (tmp_path / "turnmark").write_text("#!/bin/sh\ncat list\n")
    (tmp_path / "turnmark").chmod(0o700)
    script = f"{bash_script()}\nCOMP_WORDS=(turnmark tree s)\nCOMP_CWORD=2\n"
    script += (
        '_turnmark\nCOMP_WORDS=(turnmark tree "")\n_turnmark\nprintf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert {"sess-1", "sess-2#u1"} == {word for word in done.stdout.split() if word[0] != "-"}
    assert (done.stderr, (tmp_path / "ran").exists()) == ("", False)


def test_fish_is_told_of_every_command() -> None:
    """And of what is asked of the daemon while somebody types."""
    lines = fish_script().splitlines()
    for name in registry.names():
        assert any(
            line.startswith(f"complete -c turnmark -n __fish_use_subcommand -a {name} ")
            for line in lines
        )
    for name in COMPLETED:
        assert any(f"from {name}' -a '(turnmark " in line for line in lines)
