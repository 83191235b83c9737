"""A conversation with OpenProgram, at random."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from session_store.transcripts.openprogram_state import Session


def play(chance: random.Random, chat: Session, steps: int) -> Iterator[str]:
    """Writes a conversation with forks, retries, tools and agents; yields after each node."""
    said: list[str] = []
    for number in range(steps):
        key = f"{chat.name}-{number}"
        kind = chance.choice("uuaaartsm")
        after = chance.choice(said) if said and chance.random() < 0.2 else ""
        if kind == "t" and said:
            yield chat.code(key, f"output {number}", caller=said[-1])
        elif kind == "s" and said:
            task: dict[str, Any] = {"source": "agent_spawn", "spawn_branch_root": True}
            last = chat.last
            yield chat.node(key, "user", f"task {number}", None, caller=said[-1], **task)
            yield chat.llm(f"{key}a", f"done {number}", after=key)
            chat.last = last
            chat.go_to(last)
        elif kind == "m" and said:
            chat.mark(*chance.sample(said, 1))
            chat.meta["title"] = f"标题 {number}"
            chat.write_meta()
        elif kind == "r" and said and chat.last == said[-1]:
            gone = said.pop()
            chat.change(gone, rewound=True)
            chat.last = said[-1] if said else None
            chat.go_to(chat.last)
        else:
            write = chat.user if kind == "u" else chat.llm
            said.append(write(key, f"words 话 {number}", after=after))
        yield key
