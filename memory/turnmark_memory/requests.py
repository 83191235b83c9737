"""What can be asked of memory: one struct per method of the socket, in the shape of its params.

Lists take `limit` and the `cursor` that the page before answered as `next`; a recall is no list
but the best `k`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from turnmark_memory.model import Edit
from turnmark_session_store.model import CallerRef

Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Budget = Annotated[int, msgspec.Meta(ge=1)]
RecallMode = Literal["hybrid", "lexical", "dense", "select"]
HitKind = Literal["block", "turn"]

DEFAULT_LIMIT = 200
DEFAULT_HITS = 8


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Page(_Request, frozen=True, kw_only=True):
    limit: Limit = DEFAULT_LIMIT
    cursor: str | None = None


class RecallRequest(_Request, frozen=True, kw_only=True):
    """`memory.recall`: `session` and `tip` say who reads, they leave nothing out.

    `tip` None is the session's head. `since` is inclusive, `until` exclusive; both RFC 3339 or a
    date, and a date as `until` includes its day. `topic` is a path or the beginning of one.
    """

    query: str
    k: Limit = DEFAULT_HITS
    session: str | None = None
    tip: str | None = None
    kinds: tuple[HitKind, ...] = ("block", "turn")
    topic: str | None = None
    speaker: str | None = None
    since: str | None = None
    until: str | None = None
    project: str | None = None
    history: bool = False
    budget_tokens: Budget | None = None
    mode: RecallMode = "hybrid"


class ContextRequest(_Request, frozen=True, kw_only=True):
    """`memory.context`: the core and, with a `query`, what memory says about it.

    With `core` false the core stays out, for an agent that has it already.
    """

    session: str | None = None
    query: str | None = None
    project: str | None = None
    budget_tokens: Budget | None = None
    core: bool = True


class CoreRequest(_Request, frozen=True, kw_only=True):
    """`memory.core`."""


class TopicsRequest(_Page, frozen=True, kw_only=True):
    """`memory.topics`."""


class ShowRequest(_Request, frozen=True, kw_only=True):
    """`memory.show`: `ref` is a block, a label, a topic, `SESSION#ID` or a bare turn id."""

    ref: str


class RememberRequest(_Request, frozen=True, kw_only=True):
    """`memory.remember`: cites `turn`, else the session's last user turn."""

    text: str
    topic: str | None = None
    session: str | None = None
    turn: str | None = None
    pin: bool = False


class EditRequest(_Request, frozen=True, kw_only=True):
    """`memory.edit`: `expect` is the revision that the edits were made for."""

    edits: tuple[Edit, ...]
    expect: int | None = None


class ForgetRequest(_Request, frozen=True, kw_only=True):
    """`memory.forget`: exactly one of `block`, `turn`, `session`, `speaker` and `query`.

    A dry run answers what would go and a `confirm`; only the same request with that `confirm` and
    `dry_run` false erases.
    """

    block: str | None = None
    turn: str | None = None
    session: str | None = None
    speaker: str | None = None
    query: str | None = None
    evidence: bool = True
    everywhere: bool = False
    dry_run: bool = True
    confirm: str | None = None

    def __post_init__(self) -> None:
        aims = (self.block, self.turn, self.session, self.speaker, self.query)
        if sum(aim is not None for aim in aims) != 1:
            raise ValueError("give exactly one of block, turn, session, speaker and query")


class HistoryRequest(_Page, frozen=True, kw_only=True):
    """`memory.history`, the newest revision first."""


class UndoRequest(_Request, frozen=True, kw_only=True):
    """`memory.undo`: takes back one revision; `force` also where later ones changed its blocks."""

    revision: int
    force: bool = False


class OrganizeRequest(_Request, frozen=True, kw_only=True):
    """`memory.organize`: runs the night now; `approve` or `discard` decide what is held.

    With `uncited` and `dry_run` it only says how much would be offered again.
    """

    wait: bool = True
    uncited: bool = False
    dry_run: bool = False
    approve: bool | str = False
    discard: bool | str = False


class AdoptedBlock(_Request, frozen=True, kw_only=True):
    """A block of another memory: its id here, its words, and the turns of sessions here it cites.

    `title` is what its topic is called there, for a topic that begins with it; `aliases` are ids
    that were merged into it. Links to other blocks name their ids here.
    """

    id: str
    topic: str
    text: str
    heading: str | None = None
    title: str | None = None
    cites: tuple[CallerRef, ...] = ()
    aliases: tuple[str, ...] = ()


class SettledTurns(_Request, frozen=True, kw_only=True):
    """Turns of a session that another memory has dealt with; with all that comes before them."""

    session: str
    turns: tuple[str, ...]


class AdoptRequest(_Request, frozen=True, kw_only=True):
    """`memory.adopt`: blocks come first; `settled` holds for what was adopted up to then.

    `origin` names the program whose memory it was; marks name it as their writer.
    """

    origin: str
    blocks: tuple[AdoptedBlock, ...] = ()
    settled: tuple[SettledTurns, ...] = ()


class FlushRequest(_Request, frozen=True, kw_only=True):
    """`memory.flush`: writes what is owed; `rewrite` names the writer whose turns come again."""

    session: str | None = None
    backlog: bool = False
    removed: bool = False
    rewrite: str | None = None
    since: str | None = None
    dry_run: bool = False
    wait: bool = True


class OwedRequest(_Page, frozen=True, kw_only=True):
    """`memory.owed`; with `ids` each row lists its turns."""

    session: str | None = None
    ids: bool = False
