"""`models/openai.py` and `models/anthropic.py`: what is sent, and what is taken for an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import anyio
import anyio.lowlevel
import msgspec
import pytest

from model_server.bad_answers import API, PATIENT
from model_server.server import Act, Asked, deaf_port, fails, model_server, says
from turnmark_memory.models.anthropic import AnthropicModel
from turnmark_memory.models.deadlines import Deadlines, deadlines_within
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.models.openai import OpenAIModel
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
QUESTION = Question(
    instructions="Answer with JSON. 用中文。",
    material='{"text": "I live in 里斯本 🏡"}',
    schema_name="facts",
    schema=SCHEMA,
    max_answer_tokens=99,
)
ANSWER = '{"edits": []}'


def model_of(
    api: API,
    base_url: str,
    *,
    environ: Mapping[str, str] = {},
    deadlines: Deadlines = PATIENT,
    **more: Any,
) -> OpenAIModel | AnthropicModel:
    """Returns a model behind `base_url`."""
    settings = ModelSettings(table="writer", kind=api, model="qwen3-8b", base_url=base_url, **more)
    kinds = {"openai": OpenAIModel, "anthropic": AnthropicModel}
    return kinds[api](settings, environ, deadlines)


async def ask(model: OpenAIModel | AnthropicModel, question: Question = QUESTION) -> Reply:
    """Asks, within a time that no test needs."""
    with anyio.fail_after(60):
        return await model.ask(question)


async def failure_of(model: OpenAIModel | AnthropicModel) -> WriterFailed:
    """Returns how asking fails."""
    with pytest.raises(WriterFailed) as caught:
        await ask(model)
    return caught.value


def answers(asked: Asked) -> Act:
    """Answers well."""
    return says(ANSWER, asked=asked)


async def test_sends_what_chat_completions_take() -> None:
    """Rules and material apart, a schema, a limit, the key as a bearer token."""
    async with model_server(answers) as server:
        model = model_of(
            "openai", f"{server.address}/v1", api_key_env="KEY", environ={"KEY": " sk-1\n"}
        )
        reply = await ask(model)
    assert reply == Reply(text=ANSWER, prompt_tokens=7, answer_tokens=3)
    (asked,) = server.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-1"
    assert asked.body == {
        "model": "qwen3-8b",
        "messages": [
            {"role": "system", "content": QUESTION.instructions},
            {"role": "user", "content": QUESTION.material},
        ],
        "max_tokens": 99,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "facts", "schema": SCHEMA, "strict": True},
        },
    }


async def test_sends_what_messages_take() -> None:
    """Its own headers, the rules as the system's, the schema in the output's format."""
    async with model_server(answers) as server:
        model = model_of("anthropic", server.address, api_key_env="KEY", environ={"KEY": "sk-2"})
        reply = await ask(model)
    assert reply == Reply(text=ANSWER, prompt_tokens=7, answer_tokens=3)
    (asked,) = server.requests
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == "sk-2"
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "qwen3-8b",
        "max_tokens": 99,
        "system": QUESTION.instructions,
        "messages": [{"role": "user", "content": QUESTION.material}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


@pytest.mark.parametrize(
    ("api", "tail"),
    [
        ("openai", "/v1"),
        ("openai", "/v1/"),
        ("openai", "/v1/chat/completions"),
        ("anthropic", ""),
        ("anthropic", "/v1/"),
        ("anthropic", "/v1/messages"),
    ],
)
async def test_finds_the_method_from_what_people_paste(api: API, tail: str) -> None:
    """An address with or without its end, as manuals give it."""
    async with model_server(answers) as server:
        await ask(model_of(api, server.address + tail))
    method = "/v1/messages" if api == "anthropic" else "/v1/chat/completions"
    assert [asked.path for asked in server.requests] == [method]


@pytest.mark.parametrize("api", get_args(API))
async def test_a_server_of_ones_own_needs_no_key(api: API) -> None:
    """No header is sent, and a key for the API's own address goes nowhere else."""
    environ = {"OPENAI_API_KEY": "sk-theirs", "ANTHROPIC_API_KEY": "sk-theirs"}
    async with model_server(answers) as server:
        await ask(model_of(api, server.address, environ=environ))
    (asked,) = server.requests
    assert not {"authorization", "x-api-key"}.intersection(asked.headers)


@pytest.mark.parametrize("api", get_args(API))
async def test_says_which_key_is_missing(api: API) -> None:
    """A variable that is named and not set, or empty, is no empty key."""
    for environ in ({}, {"MY_KEY": "  "}):
        failure = await failure_of(
            model_of(api, "http://127.0.0.1:9", api_key_env="MY_KEY", environ=environ)
        )
        assert failure.transport
        assert failure.reason == (
            "no API key: MY_KEY is neither set where turnmark runs nor a systemd credential; set "
            "it and restart, or correct writer.api_key_env"
        )
    own = await failure_of(model_of(api, ""))
    assert "OPENAI_API_KEY" in own.reason or "ANTHROPIC_API_KEY" in own.reason


async def test_a_key_may_be_a_systemd_credential(tmp_path: Path) -> None:
    """A credential goes before a variable of the same name; one that isn't there does not."""
    (tmp_path / "KEY").write_text("sk-credential\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "KEY": "sk-old", "OTHER": "sk-other"}
    async with model_server(answers) as server:
        for name in ("KEY", "OTHER"):
            await ask(model_of("openai", server.address, api_key_env=name, environ=environ))
    keys = [asked.headers["authorization"] for asked in server.requests]
    assert keys == ["Bearer sk-credential", "Bearer sk-other"]


@pytest.mark.parametrize("key", ["sk-1\nx: y", "sk-“1”", "钥匙"])
async def test_a_key_that_is_none_is_not_sent(key: str) -> None:
    """What was pasted with a line end or typographic quotes is said, without the key itself."""
    failure = await failure_of(
        model_of("openai", "http://127.0.0.1:9", api_key_env="KEY", environ={"KEY": key})
    )
    assert "the API key in KEY holds what no key can" in failure.reason
    assert key not in failure.reason


def knows_only(*shapes: str, limit: str = "max_tokens") -> Any:
    """Returns a server that says 400 to other shapes of an answer, and to another limit."""

    def script(asked: Asked) -> Act:
        format_ = asked.body.get("response_format", {"type": "text"})
        if asked.api == "anthropic":
            format_ = asked.body.get("output_config", {"format": {"type": "text"}})["format"]
        if asked.api == "openai" and limit not in asked.body:
            return fails(400, {"message": f"use '{limit}' instead", "param": "max_tokens"})
        if format_["type"] not in shapes:
            return fails(400, {"message": "This response_format type is unavailable now"})
        return answers(asked)

    return script


@pytest.mark.parametrize(
    ("api", "shapes", "times"),
    [
        ("openai", ["json_schema"], 1),
        ("openai", ["json_object", "text"], 2),
        ("openai", ["text"], 3),
        ("anthropic", ["json_schema"], 1),
        ("anthropic", ["text"], 2),
    ],
)
async def test_asks_in_a_plainer_form_where_the_server_wants_it(
    api: API, shapes: list[str], times: int
) -> None:
    """Schema, then JSON, then words; what the server took is remembered."""
    async with model_server(knows_only(*shapes)) as server:
        model = model_of(api, server.address)
        assert (await ask(model)).text == ANSWER
        assert len(server.requests) == times
        await ask(model)
    assert len(server.requests) == times + 1


async def test_names_the_limit_as_the_server_does() -> None:
    """OpenAI's reasoning models refuse `max_tokens`; the schema is kept."""
    script = knows_only("json_schema", limit="max_completion_tokens")
    async with model_server(script) as server:
        model = model_of("openai", server.address)
        await ask(model)
        await ask(model)
    assert len(server.requests) == 3
    last = server.requests[-1].body
    assert (last["max_completion_tokens"], "max_tokens" in last) == (99, False)
    assert last["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("api", get_args(API))
async def test_a_fault_that_no_form_helps_changes_no_form(api: API) -> None:
    """A server that says 400 to all forms is asked in the best one next time."""
    async with model_server(lambda _: fails(400, {"message": "no"})) as server:
        model = model_of(api, server.address)
        await failure_of(model)
        server.script = answers
        server.requests.clear()
        await ask(model)
    assert len(server.requests) == 1
    assert {"response_format", "output_config"}.intersection(server.requests[0].body)


@pytest.mark.parametrize("api", get_args(API))
@pytest.mark.parametrize(
    "said",
    [
        f"<think>Where? {{}} 里斯本</think>\n{ANSWER}",
        f"\n<thinking>\nhm\n</thinking><think></think>{ANSWER}",
        f"The user said Lisbon.\n</think>\n\n{ANSWER}",
        f"  <Think>x</think> {ANSWER}",
    ],
)
async def test_leaves_out_what_a_model_thought(api: API, said: str) -> None:
    """Reasoning before the answer is no part of it, with or without its opening tag."""
    async with model_server(lambda asked: says(said, asked=asked)) as server:
        assert (await ask(model_of(api, server.address))).text.strip() == ANSWER


@pytest.mark.parametrize("said", ['{"a": "</think>"}', '["</think>"]', '{"a": "<think>b"}'])
async def test_keeps_a_tag_that_the_answer_quotes(said: str) -> None:
    """Only what stands before the answer is thought."""
    async with model_server(lambda asked: says(said, asked=asked)) as server:
        assert (await ask(model_of("openai", server.address))).text == said


async def test_reads_words_wherever_they_stand() -> None:
    """Reasoning beside the words, words in parts, a text block after a thinking one."""
    async with model_server(answers) as server:
        server.script = lambda asked: says(ANSWER, asked=asked, reasoning_content="long")
        assert (await ask(model_of("openai", server.address))).text == ANSWER
        parts = [{"type": "text", "text": ANSWER[:5]}, {"type": "text", "text": ANSWER[5:]}]
        server.script = lambda asked: says(None, asked=asked, content=parts)
        assert (await ask(model_of("openai", server.address))).text == ANSWER
        thought = [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking"}, *parts]
        server.script = lambda asked: says(None, asked=asked, content=thought)
        assert (await ask(model_of("anthropic", server.address))).text == ANSWER


async def test_counts_what_the_server_does_not() -> None:
    """Without usage the cost is estimated; what a cache held counts as well."""
    async with model_server(answers) as server:
        server.script = lambda asked: says(ANSWER, asked=asked, prompt_tokens=None)
        reply = await ask(model_of("openai", server.address))
        assert 10 < reply.prompt_tokens < 40
        usage = {"input_tokens": 5, "cache_read_input_tokens": 60, "output_tokens": 2}
        server.script = lambda asked: says(ANSWER, asked=asked, usage=usage)
        reply = await ask(model_of("anthropic", server.address))
        assert (reply.prompt_tokens, reply.answer_tokens) == (65, 2)


@pytest.mark.parametrize(("counted", "is_cut"), [(4_096, True), (30_000, False), (40, False)])
async def test_notes_that_a_server_cut_the_question(counted: int, *, is_cut: bool) -> None:
    """A small context that drops the oldest turns unsaid is a failure, not "no facts"."""
    long = msgspec.structs.replace(QUESTION, material="one two three 四五六 " * 5_000)
    script = lambda asked: says(ANSWER, asked=asked, prompt_tokens=counted)  # noqa: E731  as above
    async with model_server(script) as server:
        model = model_of("openai", server.address)
        if not is_cut:
            assert (await ask(model, long)).text == ANSWER
            return
        with pytest.raises(WriterFailed, match="read only 4096 tokens of the question") as caught:
            await ask(model, long)
    assert not caught.value.transport


async def test_white_space_is_no_sign_of_a_cut() -> None:
    """A table drawn with signs takes few tokens for its bytes."""
    long = msgspec.structs.replace(QUESTION, material=("═" * 60 + " " * 60) * 500)
    script = lambda asked: says(ANSWER, asked=asked, prompt_tokens=4_096)  # noqa: E731  as above
    async with model_server(script) as server:
        assert (await ask(model_of("openai", server.address), long)).text == ANSWER


@pytest.mark.parametrize("api", get_args(API))
async def test_gives_up_on_an_answer_that_drips(api: API) -> None:
    """A byte now and then holds off every deadline but the total."""
    deadlines = msgspec.structs.replace(PATIENT, total_seconds=0.5)
    script = lambda asked: Act(body=b"x" * 1_000, drip_seconds=1.0)  # noqa: E731  as above
    async with model_server(script) as server:
        failure = await failure_of(model_of(api, server.address, deadlines=deadlines))
    assert "0.5 s; a slow model needs a higher writer.timeout_seconds" in failure.reason


async def test_gives_up_on_a_connection_that_nobody_takes() -> None:
    """A host behind a firewall, or too busy to say yes."""
    deadlines = msgspec.structs.replace(PATIENT, connect_seconds=0.05)
    with deaf_port() as port:
        address = f"http://127.0.0.1:{port}"
        failure = await failure_of(model_of("openai", address, deadlines=deadlines))
    assert (failure.reason, failure.transport) == (
        f"127.0.0.1:{port} takes no connection; is it up?",
        True,
    )


async def test_says_that_nobody_is_there() -> None:
    """Ollama that was not started: the most common failure of all."""
    async with model_server(answers) as server:
        port = server.port
    failure = await failure_of(model_of("openai", f"http://127.0.0.1:{port}/v1"))
    assert (failure.reason, failure.transport) == (
        f"nobody answers at 127.0.0.1:{port}; start the model's server or correct writer.base_url",
        True,
    )


async def test_says_that_an_address_is_none() -> None:
    """A host name that no host can have."""
    failure = await failure_of(model_of("openai", f"http://{'x' * 70}.example/v1"))
    assert failure.transport
    assert "writer.base_url" in failure.reason


async def test_says_that_a_server_speaks_no_tls() -> None:
    """`https` in place of `http`."""
    async with model_server(answers) as server:
        failure = await failure_of(model_of("openai", f"https://127.0.0.1:{server.port}/v1"))
    assert failure.transport
    assert "speaks no TLS that is trusted here" in failure.reason


async def test_goes_to_this_machine_by_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment is for the world outside."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with model_server(answers) as server:
        assert (await ask(model_of("openai", server.address))).text == ANSWER


@pytest.mark.parametrize("api", get_args(API))
async def test_ends_the_connection_when_cancelled(api: API) -> None:
    """A shutdown waits for no model; the server sees the connection close."""
    script = lambda asked: Act(hang_after=0)  # noqa: E731  as above
    async with model_server(script) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(ask, model_of(api, server.address))
        with anyio.fail_after(60):
            while not server.requests:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel("the test is over")


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8080", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.7:11434/v1", False),
        ("https://api.deepseek.com", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("api", get_args(API))
def test_knows_what_stays_on_this_machine(api: API, address: str, *, is_local: bool) -> None:
    """Only a loopback address is here; a name that looks like one is not."""
    assert model_of(api, address).is_local is is_local


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("2.5", 2.5),
        ("0", 0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("999999999", 86_400),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("9" * 400, None),
        ("nan", None),
    ],
)
async def test_honours_how_long_to_leave_a_server_alone(header: str, seconds: float | None) -> None:
    """Seconds or a date, within a day; nonsense is as nothing."""
    script = lambda _: fails(429, None, **{"retry-after": header})  # noqa: E731  as above
    async with model_server(script) as server:
        failure = await failure_of(model_of("openai", server.address))
    assert failure.retry_after_seconds == seconds
    assert failure.transport


@pytest.mark.parametrize("total", [0.001, 5, 120, 86_400])
def test_no_step_may_take_longer_than_the_whole(total: float) -> None:
    """The configuration's timeout is the last word."""
    deadlines = deadlines_within(total)
    assert deadlines.total_seconds == total
    assert max(msgspec.structs.astuple(deadlines)) == total


async def test_a_servers_words_are_never_passed_on() -> None:
    """Many quote in an error what they were asked; logs and marks hold no turn's text."""
    secret = "I live in 里斯本"
    for status in (400, 401, 403, 404, 413, 422, 429, 500, 503):
        for error in ({"message": secret, "code": secret, "type": secret}, secret):
            script = lambda _, s=status, e=error: fails(s, e)  # noqa: E731  as above
            async with model_server(script) as server:
                failure = await failure_of(model_of("openai", server.address))
            assert secret not in failure.reason + failure.message


def test_a_daemon_without_a_model_loads_no_http(tmp_path: Path) -> None:
    """Httpx and what it brings are imported when a model is asked, not before."""
    import subprocess

    code = (
        "import sys, turnmark.service, turnmark.main;"
        "print(json := [n for n in sys.modules if n.split('.')[0] in"
        " {'httpx', 'httpcore', 'h11', 'certifi'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout.replace("'", '"')) == []
