"""`turnmark mcp` with a real MCP client on its standard streams, and a real daemon behind it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
import msgspec
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark.mcp_bridge.tools import TOOLS, Tool, params_of, schema_of

pytestmark = pytest.mark.anyio

DANA = "Dana leads the billing team since May 2026."
TEA = "我最喜欢喝的茶是龙井。"


@asynccontextmanager
async def client_of(place: DaemonPlace) -> AsyncGenerator[Client, None]:
    """An MCP client whose server is the bridge, started as agents start it."""
    words = ["-m", "turnmark", "mcp", "--socket", str(place.socket)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    with anyio.fail_after(60):
        async with Client(stdio_client(server)) as client:
            yield client


def text_of(answer: types.CallToolResult) -> str:
    """Returns the one text of an answer."""
    (content,) = answer.content
    assert isinstance(content, types.TextContent)
    return content.text


async def told(place: DaemonPlace) -> None:
    """Says two things, and lets them be written."""
    async with place.connect() as memory:
        await memory.append("work", role="user", text=DANA)
        await memory.append("家", role="user", text=TEA)
        await memory.flush()


async def test_offers_its_tools_with_schemas_that_are_valid() -> None:
    """Each tool has words, a schema of an object, and says whether it only reads."""
    with daemon_place() as place:
        place.start()
        async with client_of(place) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"recall", "context", "remember", "show", "forget", "owed", "topics"}
    for tool in tools.values():
        assert tool.input_schema["type"] == "object"
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.destructive_hint is (tool.name == "forget")


async def test_recalls_and_shows_in_two_languages() -> None:
    """A hit comes with who said it when; its ref can be shown; nothing is a sentence."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        await told(place)
        async with client_of(place) as client:
            found = text_of(await client.call_tool("recall", {"query": "龙井"}))
            assert "茶是龙井" in found
            assert found.startswith("<turnmark-memory>")
            assert "家" in found
            found = text_of(await client.call_tool("recall", {"query": "who leads billing?"}))
            asked = {"query": "who leads billing?", "kinds": ["turn"]}
            assert "(b-" not in text_of(await client.call_tool("recall", asked))
            ref = found.split("(b-")[1].split(",")[0].rstrip(")\n")
            shown = text_of(await client.call_tool("show", {"ref": f"b-{ref}"}))
            assert "Dana" in shown
            nothing = await client.call_tool("recall", {"query": "xylophone zebra quartz"})
            assert not nothing.is_error
            assert "nothing that fits" in text_of(nothing)
            assert DANA in text_of(await client.call_tool("context", {"query": "billing"}))


async def test_remembers_and_forgets_only_what_was_confirmed() -> None:
    """A forget without a code shows; with the code it erases."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with client_of(place) as client:
            fact = "The bicycle code is 4711, 自行车密码。"
            kept = await client.call_tool("remember", {"text": fact})
            block = text_of(kept).split("Remembered as ")[1].split()[0]
            dry = text_of(await client.call_tool("forget", {"block": block}))
            assert "Nothing was erased yet" in dry
            assert fact in dry
            assert fact in text_of(await client.call_tool("recall", {"query": "bicycle code"}))
            confirm = dry.rsplit("confirm=", 1)[1].strip()
            done = await client.call_tool("forget", {"block": block, "confirm": confirm})
            assert "can't come back" in text_of(done)
            after = text_of(await client.call_tool("recall", {"query": "bicycle code"}))
            assert "4711" not in after


async def test_lists_what_is_owed_and_the_topics() -> None:
    """What is not written yet, then the topics that it came to."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with client_of(place) as client:
            async with place.connect() as memory:
                await memory.append("work", role="user", text=DANA)
                assert "work: 1 turn" in text_of(await client.call_tool("owed", {}))
                await memory.flush()
            assert "Nothing is owed" in text_of(await client.call_tool("owed", {}))
            assert "people/" in text_of(await client.call_tool("topics", {}))


async def test_gives_core_and_topics_as_resources() -> None:
    """Every resource that is listed can be read, and is what the file says."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        await told(place)
        async with client_of(place) as client:
            listed = (await client.list_resources()).resources
            read = {str(one.uri): await client.read_resource(one.uri) for one in listed}
            assert "turnmark://core" in read
            assert len(read) > 1
            for uri, answer in read.items():
                (content,) = answer.contents
                assert isinstance(content, types.TextResourceContents)
                name = uri.removeprefix("turnmark://")
                if name != "core":
                    file = place.workspace / f"{name}.md"
                    assert content.text == file.read_text(encoding="utf-8")
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.uri_template for one in templates] == ["turnmark://topics/{+topic}"]
            with pytest.raises(MCPError, match="no-such"):
                await client.read_resource("turnmark://topics/no-such")


async def test_an_error_is_an_answer_and_the_bridge_goes_on() -> None:
    """Wrong parameters, unknown refs, no daemon: each is said, and the next call works."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with client_of(place) as client:
            wrong = [
                ("recall", {}, "query"),
                ("recall", {"query": 7}, "Expected `str`"),
                ("recall", {"query": "x", "colour": "red"}, "colour"),
                ("recall", {"query": "x", "k": 0}, ">= 1"),
                ("show", {"ref": "b-00000000"}, "not_found"),
                ("forget", {}, "exactly one"),
                ("dance", {}, "there is no tool"),
            ]
            for tool, given, words in wrong:
                answer = await client.call_tool(tool, given)
                assert answer.is_error
                assert words in text_of(answer)
            place.stop()
            gone = await client.call_tool("recall", {"query": "Dana"})
            assert gone.is_error
            assert "turnmark serve" in text_of(gone)
            place.start()
            assert not (await client.call_tool("recall", {"query": "Dana"})).is_error


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
def test_describes_every_parameter(tool: Tool) -> None:
    """A model reads what each is for; the schema needs no references."""
    schema = schema_of(tool.params)
    assert b"$ref" not in msgspec.json.encode(schema)
    for parameter in schema["properties"].values():
        assert parameter["description"]


def test_a_forget_with_null_parameters_is_a_dry_run() -> None:
    """Clients send null for what they leave out."""
    (forget,) = [tool for tool in TOOLS if tool.name == "forget"]
    given = {"block": "b-00000000", "turn": None, "confirm": None}
    expected = {"block": "b-00000000", "evidence": True, "dry_run": True}
    assert params_of(forget, given) == expected
