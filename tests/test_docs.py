"""The documents say what the code does, and the two READMEs say the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnmark.config import Config, decode_config
from turnmark.methods import method_table

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.zh.md")
DOCUMENTS = sorted(
    file.relative_to(ROOT).as_posix()
    for file in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "golden" for part in file.relative_to(ROOT).parts)
)
"""All but the memories that tests compare with: their sources are not kept."""

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `turnmark (\w+)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks_of(name: str) -> list[tuple[str, str]]:
    """Returns language and text of each fenced block."""
    return _BLOCK.findall(text_of(name))


@pytest.mark.parametrize("readme", READMES)
def test_lists_the_commands_that_there_are(readme: str) -> None:
    """The table of a README and `turnmark --help` name the same commands."""
    done = subprocess.run(
        [sys.executable, "-m", "turnmark", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    helped = re.findall(r"^  (\w+) {2,}\S", done.stdout.split("\noptions")[0], re.MULTILINE)
    assert "serve" in helped
    assert sorted(_ROW.findall(text_of(readme))) == sorted(helped)


def test_says_the_same_in_both_languages() -> None:
    """The READMEs have the same commands, the same code and as many sections and points."""
    english, chinese = READMES
    assert _ROW.findall(text_of(english)) == _ROW.findall(text_of(chinese))
    assert blocks_of(english) == blocks_of(chinese)
    for mark in (r"^## ", r"^- "):
        counts = [len(re.findall(mark, text_of(name), re.MULTILINE)) for name in READMES]
        assert counts[0] == counts[1] > 0


def test_starts_with_two_commands() -> None:
    """The quick start is `make demo` and `make test`, nothing else."""
    assert blocks_of("README.md")[0] == ("sh", "make demo\nmake test\n")


def test_names_commands_and_targets_that_exist() -> None:
    """What a code block runs is a command of turnmark or a target of the Makefile."""
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
    commands = set(_ROW.findall(text_of("README.md")))
    for language, block in blocks_of("README.md"):
        for line in block.splitlines() if language == "sh" else ():
            program, word = line.split()[:2]
            assert word in {"make": targets, "turnmark": commands, "pip": {"install"}}[program]


def test_shows_python_that_parses() -> None:
    """The example is whole, and imports what the package exports."""
    (example,) = [block for language, block in blocks_of("README.md") if language == "python"]
    imports = [node for node in ast.walk(ast.parse(example)) if isinstance(node, ast.ImportFrom)]
    module = __import__("turnmark")
    for node in imports:
        assert node.module == "turnmark"
        assert all(hasattr(module, alias.name) for alias in node.names)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_shows_configurations_that_are_taken(document: str) -> None:
    """Every TOML block is a configuration that a daemon starts with."""
    for language, block in blocks_of(document):
        if language == "toml":
            decode_config(block, Path(document))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_to_what_is_there(document: str) -> None:
    """Every link inside the repository has an end."""
    for link in _LINK.findall(text_of(document)):
        assert ((ROOT / document).parent / link).exists(), link


class Anything:
    """Stands for what answers; a table of methods only looks its functions up."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_given: None


def test_tells_programs_of_every_method_and_its_params() -> None:
    """The page for an agent of one's own names what the socket takes, with a `?` for may."""
    it: Any = Anything()
    rows = re.findall(
        r"^\| `([a-z._]+)` \|([^|]*)\|", text_of("docs/your-own-agent.md"), re.MULTILINE
    )
    told = {name: set(re.findall(r"\w+\??", params.replace("one of", ""))) for name, params in rows}
    taken = {
        name: {
            f"{field.encode_name}{'' if field.required else '?'}"
            for field in msgspec.structs.fields(method.params)
        }
        for name, method in method_table(it, it, it, it).items()
    }
    aims = {"block", "turn", "session", "speaker", "query"}  # exactly one of them is needed
    told["memory.forget"] = {f"{one}?" if one in aims else one for one in told["memory.forget"]}
    assert told == taken


def keys_of(table: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Yields the keys of a configuration's table, those of its tables with their names."""
    for field in msgspec.structs.fields(table):
        inner = field.type
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from keys_of(inner, f"{prefix}{field.encode_name}.")
        else:
            yield f"{prefix}{field.encode_name}"


def test_explains_every_key_of_the_configuration() -> None:
    """By its full name, or in the row of the table's first agent."""
    page = text_of("docs/configuration.md")
    keys = list(keys_of(Config))
    assert "memory.idle_minutes" in keys
    for key in keys:
        table, _, name = key.rpartition(".")
        assert f"`{key}`" in page or (table == "transcripts" and f"`{name}`" in page), key


def test_leads_to_every_document() -> None:
    """From either README each page of docs/ is one step away."""
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    for readme in READMES:
        assert pages <= set(_LINK.findall(text_of(readme)))
