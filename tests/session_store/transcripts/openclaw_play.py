"""People, agents and the program of OpenClaw, at random, on one database."""

from __future__ import annotations

import random

from session_store.transcripts.openclaw_gateway import MAIN, WORDS, Gateway


class Player:
    """Plays people, agents and the program, at random."""

    def __init__(self, chance: random.Random, gateway: Gateway) -> None:
        self.chance = chance
        self.gateway = gateway
        self.keys = [MAIN]
        gateway.begin()

    def play(self) -> None:
        """One thing that happens in one conversation."""
        key = self.chance.choice(self.keys)
        steps = (
            self.exchange,
            self.rewind,
            self.navigate,
            self.fork,
            self.spawn,
            self.reset,
            self.compact,
            self.shorten,
        )
        self.chance.choices(steps, weights=(10, 2, 2, 1, 1, 1, 1, 1))[0](key)

    def exchange(self, key: str) -> None:
        """A message and its answer."""
        self.gateway.user(self._words(), key)
        if self.chance.random() < 0.4:
            self.gateway.tool(key)
        self.gateway.note(key)
        self.gateway.answer(self._words(), key)

    def rewind(self, key: str) -> None:
        """A message on the line where the conversation is, taken back."""
        users = self._users(key)
        if users:
            self.gateway.rewind(key, self.chance.choice(users))
        self.exchange(key)

    def navigate(self, key: str) -> None:
        """The program goes on from an older entry; nothing is taken back."""
        session = self.gateway.current[key]
        path = self.gateway.path_to(session, self.gateway.leaves[session])
        if path:
            target = self.chance.choice(path)["id"]
            leaf = {"type": "leaf", "id": f"{self.chance.getrandbits(32):08x}", "parentId": None}
            self.gateway.append({**leaf, "targetId": target}, key)
            self.gateway.leaves[session] = target

    def fork(self, key: str) -> None:
        """Another conversation from before a message."""
        users = self._users(key)
        if users and len(self.keys) < 6:
            self.keys.append(f"agent:main:fork-{len(self.keys)}")
            self.gateway.fork(key, self.chance.choice(users), self.keys[-1])
            self.exchange(self.keys[-1])

    def spawn(self, key: str) -> None:
        """A sub-agent, which the tool's result names or not."""
        if len(self.keys) < 6:
            child = f"agent:main:subagent:{len(self.keys)}"
            if self.chance.random() < 0.5:
                self.gateway.tool(key, details={"childSessionKey": child})
            self.gateway.begin(child, spawned_by=key, created_via="spawn")
            self.keys.append(child)
            self.exchange(child)

    def reset(self, key: str) -> None:
        """A new transcript."""
        self.gateway.reset(key)

    def compact(self, key: str) -> None:
        """A new transcript behind a summary."""
        self.gateway.compact(key)

    def shorten(self, key: str) -> None:
        """Entries again, under other ids."""
        session = self.gateway.current[key]
        path = self.gateway.path_to(session, self.gateway.leaves[session])
        if path:
            self.gateway.shorten(key, self.chance.choice(path)["id"])

    def withdraw(self) -> None:
        """A transcript taken out of memory."""
        sessions = [
            one for (one,) in self.gateway.db.execute("SELECT session_id FROM session_windows")
        ]
        self.gateway.insert(
            "memory_session_tombstones",
            session_id=self.chance.choice(sessions),
            agent_id="main",
            reason="forgotten",
            created_at=0,
        )

    def _users(self, key: str) -> list[str]:
        session = self.gateway.current[key]
        path = self.gateway.path_to(session, self.gateway.leaves[session])
        return [e["id"] for e in path if e.get("message", {}).get("role") == "user"]

    def _words(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=3))
