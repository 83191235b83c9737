"""`turnmark.config`: what a configuration may say, and how it is refused."""

from __future__ import annotations

from datetime import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark.config import (
    Config,
    ConfigRefused,
    Rule,
    RuleMatch,
    Rules,
    Settings,
    decode_config,
    load_config,
)
from turnmark_memory.models.settings import ModelSettings

FILE = Path("config.toml")

WHOLE = """\
state_dir = "/var/lib/turnmark"
workspace_dir = "~/memory"
socket = "/run/turnmark.sock"

[memory]
trigger_tokens = 8000
idle_minutes = 0.5
core_tokens = 1000
nightly = "off"

[writer]
kind = "builtin"
model = ""
base_url = ""
api_key_env = ""
command = []
timeout_seconds = 60
daily_tokens = 0

[transcripts]
backlog = "write"
claude-code = "~/.claude"
codex = "off"

[privacy]
mask = "exits"

[[rules]]
match = { project = "/home/me/secret" }
memory = "local"
recall = "project"

[[rules]]
match = { agent = "微信*", session = "工作-*" }
memory = "off"
"""


def refusal_of(text: str) -> ConfigRefused:
    """Returns the error that `text` is refused with."""
    with pytest.raises(ConfigRefused) as caught:
        decode_config(text, FILE)
    return caught.value


def test_reads_every_key_of_the_interface() -> None:
    """Each key that the interface names arrives under its name."""
    config = decode_config(WHOLE, FILE)
    assert (config.memory.trigger_tokens, config.memory.idle_minutes) == (8000, 0.5)
    assert config.memory.nightly_at is None
    assert config.writer.timeout_seconds == 60
    assert config.transcripts.places() == {
        "claude-code": "~/.claude",
        "codex": "off",
        "openclaw": "auto",
        "hermes": "auto",
        "pi": "auto",
        "opencode": "auto",
        "weclaw": "auto",
        "openprogram": "off",  # it has a memory of its own, taken over by `migrate`
    }
    assert config.transcripts.backlog == "write"
    assert config.privacy.mask == "exits"
    assert [rule.memory for rule in config.rules] == ["local", "off"]
    assert (config.state_dir, config.socket) == ("/var/lib/turnmark", "/run/turnmark.sock")


def test_takes_the_defaults_of_the_interface() -> None:
    """An empty file and no file are the defaults."""
    config = decode_config("", FILE)
    assert config == Config()
    assert config.memory.nightly_at == time(3, 0)
    assert (config.memory.trigger_tokens, config.memory.core_tokens) == (16000, 2000)
    assert (config.writer.kind, config.privacy.mask) == ("builtin", "store")
    assert config.transcripts.place_of("claude-code") == "auto"
    assert config.transcripts.place_of("another") == "off"
    assert config.recall.embedder == "auto"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("[memory]\n# a note\nidle_minute = 3\n", 3, "memory.idle_minute"),
        ("[memory]\n\ntrigger_tokens = 'many'\n", 3, "memory.trigger_tokens"),
        ("memory.core_tokens = true\n", 1, "memory.core_tokens"),
        ("x = 1\n", 1, "x"),
        ("[memory]\n[memory.night]\nat = 3\n", 2, "memory.night"),
        ("[transcripts]\nclaude_code = 'off'\n", 2, "transcripts.claude_code"),
        ("[writer]\ncommand = [\n  'a',\n  2,\n]\n", 2, "writer.command[1]"),
        (
            "[[rules]]\nmatch = {}\n[[rules]]\nmatch = {\n}\n".replace("{\n}", "{ proj = '/x' }"),
            4,
            "rules[1].match.proj",
        ),
        ("[[rules]]\nmatch = {}\n\n[[rules]]\nmemory = 'on'\n", 4, "rules[1]"),
        ("[[rules]]\nmatch = {}\n[[rules]]\n[rules.match]\nagent = 3\n", 5, "rules[1].match.agent"),
        (
            '[writer]\nmodel = """\n[memory]\nidle_minutes = 1\n"""\n[memory]\nidle_minutes = 0\n',
            7,
            "memory.idle_minutes",
        ),
    ],
)
def test_names_file_line_and_key_of_what_is_wrong(text: str, line: int, key: str) -> None:
    """An unknown key and a wrong type are refused with the place where they stand."""
    error = refusal_of(text)
    assert error.kind == "refused"
    assert error.facts == {"file": "config.toml", "line": line, "key": key}
    assert error.message.startswith(f"config.toml:{line}: {key} ")


def test_guesses_the_key_that_was_meant() -> None:
    """A misspelt key is refused with the nearest known one."""
    assert "did you mean idle_minutes?" in refusal_of("[memory]\nidle_minuts = 3\n").message


@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ("memory", "idle_minutes = 0"),
        ("memory", "idle_minutes = -1"),
        ("memory", "idle_minutes = nan"),
        ("memory", "idle_minutes = inf"),
        ("memory", "trigger_tokens = 0"),
        ("memory", "core_tokens = 0"),
        ("memory", "core_tokens = 1.5"),
        ("memory", 'nightly = "3:00"'),
        ("memory", 'nightly = "24:00"'),
        ("memory", 'nightly = "never"'),
        ("memory", "nightly = 03:00:00"),
        ("writer", "timeout_seconds = 0"),
        ("writer", "daily_tokens = -1"),
        ("writer", 'kind = "gpt"'),
        ("transcripts", 'backlog = "drop"'),
        ("transcripts", 'codex = "on"'),
        ("privacy", 'mask = "never"'),
        ("recall", 'embedder = "openai"'),
    ],
)
def test_refuses_what_is_out_of_range(table: str, setting: str) -> None:
    """A value that no daemon could work with stops the start at its line."""
    error = refusal_of(f"[{table}]\n{setting}\n")
    assert error.facts["line"] == 2
    assert error.facts["key"] == f"{table}.{setting.split(maxsplit=1)[0]}"


def test_a_writer_needs_what_its_kind_asks() -> None:
    """A kind alone says too little; the message names the key and says what belongs there."""
    assert refusal_of('[writer]\nkind = "openai"\n').message == (
        'config.toml:1: writer.model must name a model for kind = "openai"'
    )
    assert refusal_of('[writer]\n\nkind = "command"\ncommand = []\n').message == (
        'config.toml:4: writer.command must name a program for kind = "command": ["claude", "-p"]'
    )


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ('model = " "', 'must name a model for kind = "openai"'),
        ('base_url = "localhost:11434/v1"', "must be an address"),
        ('base_url = "ftp://host/v1"', "must be an address"),
        ('base_url = "http:///v1"', "must be an address"),
        ('base_url = "http://host:port/v1"', "must be an address"),
        ('base_url = "http://me:secret@host/v1"', "must be an address"),
        ('api_key_env = "sk-123"', "must be the name of a variable or systemd credential"),
        ("daily_tokens = 1.5", "is wrong"),
        ("temperature = 0", "is not a key that turnmark knows"),
    ],
)
@pytest.mark.parametrize("table", ["writer", "writer.tidy", "writer.select"])
def test_refuses_what_no_model_can_be_asked_with(table: str, setting: str, problem: str) -> None:
    """An address without a scheme, a key in place of its name: at their line, before a start."""
    if table != "writer" and "daily_tokens" in setting:
        problem = "is not a key that turnmark knows"
    kept = {"kind": '"openai"', "model": '"m"'}
    kept.pop(setting.split(maxsplit=1)[0], None)
    lines = [f"[{table}]", *(f"{key} = {value}" for key, value in kept.items()), setting]
    error = refusal_of("\n".join(lines))
    assert error.facts["key"] == f"{table}.{setting.split(maxsplit=1)[0]}"
    assert error.facts["line"] == len(lines)
    assert problem in error.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[writer]\nkind = "magic"', "writer.kind can't be 'magic'; there is builtin, openai,"),
        ('[writer.tidy]\nkind = "魔法"', "writer.tidy.kind can't be '魔法'; there is builtin,"),
        ('[recall]\nembedder = "bge"', "there is auto, off, e5"),
        (
            '[[rules]]\nmatch = {}\nmemory = "never"',
            "rules[0].memory can't be 'never'; there is on,",
        ),
    ],
)
def test_names_the_words_that_a_key_may_have(text: str, said: str) -> None:
    """A person needs no manual to mend a slip."""
    assert said in refusal_of(text).message


@pytest.mark.parametrize(
    "command", ['["claude", "-p"]', '["/opt/llm"]', '["模型", "--json"]', '["llm", "-m", ""]']
)
def test_takes_a_program_by_name_or_by_path(command: str) -> None:
    """A program on the PATH and one with a full path are writers; a relative path is not."""
    config = decode_config(f'[writer]\nkind = "command"\ncommand = {command}\n', FILE)
    found = config.writer.model_for("write")
    assert found is not None
    assert (found.kind, found.command) == ("command", config.writer.command)
    relative = refusal_of('[writer]\nkind = "command"\ncommand = ["./llm"]\n')
    assert relative.facts["key"] == "writer.command"


def test_a_task_takes_what_it_leaves_out_from_the_writer() -> None:
    """`[writer.select]` with a model alone is the writer's endpoint with another model."""
    writer = decode_config(
        """\
[writer]
kind = "openai"
model = "qwen3-32b"
base_url = "http://localhost:8000/v1"
api_key_env = "KEY"
timeout_seconds = 300
[writer.select]
model = "qwen3-4b"
timeout_seconds = 5
""",
        FILE,
    ).writer
    large = ModelSettings(
        table="writer",
        kind="openai",
        model="qwen3-32b",
        base_url="http://localhost:8000/v1",
        api_key_env="KEY",
        timeout_seconds=300,
    )
    assert writer.model_for("write") == writer.model_for("tidy") == large
    assert writer.model_for("select") == msgspec.structs.replace(
        large, table="writer.select", model="qwen3-4b", timeout_seconds=5
    )


def test_a_task_with_a_kind_stands_alone() -> None:
    """Another API takes neither address nor key of the writer; `builtin` asks no model."""
    writer = decode_config(
        """\
[writer]
kind = "openai"
model = "qwen3-32b"
base_url = "http://localhost:8000/v1"
api_key_env = "KEY"
[writer.tidy]
kind = "anthropic"
model = "claude"
[writer.select]
kind = "builtin"
""",
        FILE,
    ).writer
    assert writer.model_for("tidy") == ModelSettings(
        table="writer.tidy", kind="anthropic", model="claude"
    )
    assert writer.model_for("select") is None


def test_the_builtin_writer_asks_no_model() -> None:
    """Without a `[writer]` there is no model for any task, and a task may still have its own."""
    assert [Config().writer.model_for(task) for task in ("write", "tidy", "select")] == [None] * 3
    text = '[writer.tidy]\nkind = "openai"\nmodel = "m"\n'
    writer = decode_config(text, FILE).writer
    assert writer.model_for("write") is None
    assert writer.model_for("tidy") is not None


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = = 2\n", 2), ("[memory\n", 1), ("a = 1\n[memory]\nx = '''\n", 4)],
)
def test_names_the_line_of_a_syntax_error(text: str, line: int) -> None:
    """What is not TOML is refused with its line."""
    error = refusal_of(text)
    assert error.facts["line"] == line
    assert "is not TOML" in error.message


def test_says_which_line_is_not_utf_8(tmp_path: Path) -> None:
    """A file in another encoding is refused with the first line that shows it."""
    path = tmp_path / "config.toml"
    path.write_bytes("[writer]\nmodel = '模型'\n".encode("gbk"))
    with pytest.raises(ConfigRefused, match=r"config\.toml:2: is not UTF-8"):
        load_config(path, must_exist=False)


def test_reads_a_file_that_an_editor_began_with_a_byte_order_mark(tmp_path: Path) -> None:
    """A byte order mark is no part of the first key."""
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbf[memory]\ncore_tokens = 7\n")
    assert load_config(path, must_exist=True).memory.core_tokens == 7


def test_misses_only_a_file_that_was_asked_for(tmp_path: Path) -> None:
    """No file at the default place is fine; a named one must be there and be readable."""
    assert load_config(tmp_path / "none.toml", must_exist=False) == Config()
    with pytest.raises(ConfigRefused, match="no such configuration file"):
        load_config(tmp_path / "none.toml", must_exist=True)
    with pytest.raises(ConfigRefused, match="can't be read"):
        load_config(tmp_path, must_exist=False)


@pytest.mark.parametrize(
    "text",
    ['state_dir = "memory"', 'socket = ""', '[[rules]]\nmatch = {project = "secret"}'],
)
def test_refuses_a_path_that_depends_on_where_it_is_read(text: str) -> None:
    """A relative path would name another place for each start."""
    assert "must be a full path" in refusal_of(text).message


RULES = Rules(
    (
        Rule(match=RuleMatch(agent="codex*"), memory="off"),
        Rule(match=RuleMatch(project="/home/me/secret"), memory="local", recall="project"),
        Rule(match=RuleMatch(project="/home/me/secret/公开"), memory="on"),
        Rule(match=RuleMatch(session="草稿-*", agent="pi"), memory="off"),
    )
)


@pytest.mark.parametrize(
    ("agent", "project", "session", "memory", "recall"),
    [
        ("pi", None, "s", "on", "all"),
        ("codex-cli", None, "s", "off", "all"),
        ("pi", "/home/me/secret", "s", "local", "project"),
        ("pi", "/home/me/secret/", "s", "local", "project"),
        ("pi", "/home/me/secret/a/b", "s", "local", "project"),
        ("pi", "/home/me/other/../secret/a", "s", "local", "project"),
        ("pi", "/home/me/secrets", "s", "on", "all"),
        ("pi", "/home/me/secret/公开/x", "s", "on", "project"),
        ("codex", "/home/me/secret", "s", "local", "project"),
        ("pi", None, "草稿-1", "off", "all"),
        ("claude-code", None, "草稿-1", "on", "all"),
        (None, None, "s", "on", "all"),
    ],
)
def test_lets_the_last_matching_rule_decide(
    agent: str | None, project: str | None, session: str, memory: str, recall: str
) -> None:
    """Rules refine each other in order; what a rule leaves out stays as it was."""
    assert RULES.memory_for(agent, project, session) == memory
    assert RULES.recall_for(agent, project, session) == recall


def test_expands_home_in_the_projects_of_rules() -> None:
    """`~/` in a rule means the home that the daemon was started with."""
    config = decode_config("[[rules]]\nmatch = { project = '~/secret' }\nmemory = 'off'\n", FILE)
    settings = Settings(
        config=config,
        config_path=None,
        state=Path("/s"),
        workspace=Path("/w"),
        socket=Path("/s/turnmark.sock"),
        home=Path("/home/李明"),
    )
    assert settings.rules.memory_for("pi", "/home/李明/secret/x", "s") == "off"
    assert settings.rules.memory_for("pi", "/home/me/secret/x", "s") == "on"


@given(st.text(alphabet="[]{}=\"'#.\n ,abcmemory_idles1-0true模", max_size=120))
def test_refuses_or_reads_any_text(text: str) -> None:
    """No text makes decoding fail with anything but a refusal that names a line in the text."""
    lines = 1
    try:
        decode_config(text, FILE)
    except ConfigRefused as error:
        lines = error.facts["line"]
    assert 1 <= lines <= text.count("\n") + 1
