"""The store's schema: all of its SQL definitions, and the migrations that lead here.

Three kinds of tables. *Shape* (`turn`, `merge_parent`, `mark`) only grows: triggers refuse to
change or delete it, except that a mark may be replaced. `REPLACE` is refused as well: it would
delete without asking the triggers on deleting. *Words* (`turn_words`, `session_words`,
`partial_turn`) hold what people wrote; only forgetting deletes from them. The rest is state
(`session`, `branch`, claims, batches, how far transcripts are read), of which tips and heads move
only with an event row that says so: the triggers at the end of the first migration refuse any other
update, whoever asks.
"""

from __future__ import annotations

APPLICATION_ID = 0x74726E6D
"""`trnm`, so that `file` and a mistaken path can tell this database from others."""

_TABLES = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE namespace (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE workspace (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL DEFAULT 0,
    last_night TEXT
) STRICT;

CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    type TEXT NOT NULL,
    session INTEGER,
    branch INTEGER,
    old INTEGER,
    new INTEGER,
    head_old INTEGER,
    head_new INTEGER,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    project TEXT,
    namespace INTEGER REFERENCES namespace,
    memory TEXT NOT NULL DEFAULT 'on' CHECK (memory IN ('on', 'local', 'off')),
    forked_from INTEGER REFERENCES session,
    forked_turn INTEGER REFERENCES turn,
    caller INTEGER REFERENCES turn,
    head INTEGER REFERENCES turn,
    head_branch INTEGER REFERENCES branch,
    head_move INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    closed_ms INTEGER,
    deleted_ms INTEGER
) STRICT;

CREATE TABLE session_words (
    session INTEGER PRIMARY KEY REFERENCES session,
    title TEXT
) STRICT;

CREATE TABLE turn (
    id INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespace,
    key TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session,
    predecessor INTEGER REFERENCES turn,
    caller INTEGER REFERENCES turn,
    supersedes INTEGER REFERENCES turn,
    root INTEGER NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    recordable INTEGER NOT NULL,
    predicate INTEGER NOT NULL,
    digest BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    lost_predecessor INTEGER NOT NULL DEFAULT 0,
    time_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (namespace, key),
    CHECK (predecessor IS NULL OR predecessor < id)
) STRICT;
CREATE INDEX turn_by_predecessor ON turn (predecessor) WHERE predecessor IS NOT NULL;
CREATE INDEX turn_by_caller ON turn (caller) WHERE caller IS NOT NULL;
CREATE INDEX turn_by_session ON turn (session);
CREATE INDEX turn_root_by_session ON turn (session) WHERE predecessor IS NULL;

CREATE TABLE merge_parent (
    turn INTEGER NOT NULL REFERENCES turn,
    parent INTEGER NOT NULL REFERENCES turn,
    PRIMARY KEY (turn, parent),
    CHECK (parent < turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX merge_parent_by_parent ON merge_parent (parent);

CREATE TABLE turn_words (
    turn INTEGER PRIMARY KEY REFERENCES turn,
    text BLOB NOT NULL,
    speaker_id TEXT,
    speaker_name TEXT,
    metadata BLOB
) STRICT;

CREATE TABLE partial_turn (
    session INTEGER NOT NULL REFERENCES session,
    id TEXT NOT NULL,
    predecessor INTEGER REFERENCES turn,
    role TEXT NOT NULL,
    text BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE retired_turn (
    turn INTEGER PRIMARY KEY REFERENCES turn,
    at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE taken_back_turn (
    turn INTEGER PRIMARY KEY REFERENCES turn
) STRICT;

CREATE TABLE forgotten_turn (
    turn INTEGER PRIMARY KEY REFERENCES turn,
    at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE branch (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES session,
    title TEXT NOT NULL,
    tip INTEGER REFERENCES turn,
    state TEXT NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'merged', 'retired', 'deleted')),
    archived INTEGER NOT NULL DEFAULT 0,
    move INTEGER,
    moved_ms INTEGER NOT NULL,
    idle_ms INTEGER
) STRICT;
CREATE INDEX branch_by_tip ON branch (tip) WHERE tip IS NOT NULL;
CREATE INDEX branch_by_session ON branch (session);
CREATE INDEX branch_by_idle ON branch (idle_ms) WHERE idle_ms IS NOT NULL;

CREATE TABLE request_key (
    session INTEGER NOT NULL REFERENCES session,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer BLOB NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE mark (
    workspace INTEGER NOT NULL REFERENCES workspace,
    turn INTEGER NOT NULL REFERENCES turn,
    outcome TEXT NOT NULL CHECK (outcome IN ('kept', 'nothing', 'parked')),
    reason TEXT,
    writer TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX mark_parked ON mark (workspace, turn) WHERE outcome = 'parked';

CREATE TABLE batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace INTEGER NOT NULL REFERENCES workspace,
    session INTEGER NOT NULL REFERENCES session,
    branch INTEGER NOT NULL REFERENCES branch,
    tip INTEGER NOT NULL REFERENCES turn,
    install INTEGER,
    outcome TEXT,
    reason TEXT,
    writer TEXT NOT NULL,
    blocks BLOB,
    closed_ms INTEGER
) STRICT;
CREATE INDEX batch_open ON batch (workspace) WHERE closed_ms IS NULL;

CREATE TABLE batch_turn (
    batch INTEGER NOT NULL REFERENCES batch,
    turn INTEGER NOT NULL REFERENCES turn,
    PRIMARY KEY (batch, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX batch_turn_by_turn ON batch_turn (turn);

CREATE TABLE claim (
    workspace INTEGER NOT NULL REFERENCES workspace,
    root INTEGER NOT NULL REFERENCES turn,
    batch INTEGER NOT NULL REFERENCES batch,
    owner TEXT NOT NULL,
    PRIMARY KEY (workspace, root)
) STRICT, WITHOUT ROWID;

CREATE TABLE failure (
    workspace INTEGER NOT NULL REFERENCES workspace,
    root INTEGER NOT NULL REFERENCES turn,
    failures INTEGER NOT NULL,
    limit_turns INTEGER,
    not_before_ms INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (workspace, root)
) STRICT, WITHOUT ROWID;

CREATE TABLE install (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace INTEGER NOT NULL REFERENCES workspace,
    revision INTEGER NOT NULL,
    cause TEXT NOT NULL,
    body BLOB NOT NULL,
    closed_ms INTEGER
) STRICT;
CREATE INDEX install_open ON install (workspace) WHERE closed_ms IS NULL;
"""

_APPEND_ONLY = """
CREATE TRIGGER turn_is_not_replaced BEFORE INSERT ON turn
WHEN EXISTS (SELECT 1 FROM turn WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM turn WHERE namespace = NEW.namespace AND key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'turns never change'); END;
CREATE TRIGGER turn_is_kept BEFORE DELETE ON turn
BEGIN SELECT RAISE(ABORT, 'turns are never deleted'); END;
CREATE TRIGGER turn_is_frozen BEFORE UPDATE ON turn
BEGIN SELECT RAISE(ABORT, 'turns never change'); END;
CREATE TRIGGER merge_parent_is_kept BEFORE DELETE ON merge_parent
BEGIN SELECT RAISE(ABORT, 'edges are never deleted'); END;
CREATE TRIGGER merge_parent_is_frozen BEFORE UPDATE ON merge_parent
BEGIN SELECT RAISE(ABORT, 'edges never change'); END;
CREATE TRIGGER merge_parent_comes_with_its_turn BEFORE INSERT ON merge_parent
WHEN NEW.turn IS NOT (SELECT max(id) FROM turn)
BEGIN SELECT RAISE(ABORT, 'edges never change'); END;
CREATE TRIGGER mark_is_kept BEFORE DELETE ON mark
BEGIN SELECT RAISE(ABORT, 'marks are replaced, never deleted'); END;
CREATE TRIGGER mark_keeps_its_turn BEFORE UPDATE OF workspace, turn ON mark
BEGIN SELECT RAISE(ABORT, 'a mark stays on its turn'); END;
CREATE TRIGGER forgotten_stays BEFORE DELETE ON forgotten_turn
BEGIN SELECT RAISE(ABORT, 'what is forgotten stays forgotten'); END;
CREATE TRIGGER forgotten_keeps_its_turn BEFORE UPDATE OF turn ON forgotten_turn
BEGIN SELECT RAISE(ABORT, 'what is forgotten stays forgotten'); END;
CREATE TRIGGER event_is_frozen BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events never change'); END;
CREATE TRIGGER words_go_with_forgetting BEFORE DELETE ON turn_words
WHEN NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = OLD.turn)
BEGIN SELECT RAISE(ABORT, 'only forgetting deletes words'); END;
CREATE TRIGGER words_are_frozen BEFORE UPDATE ON turn_words
BEGIN SELECT RAISE(ABORT, 'words never change'); END;
"""

_GATE = """
CREATE TRIGGER branch_is_kept BEFORE DELETE ON branch
BEGIN SELECT RAISE(ABORT, 'branches end, they are never deleted'); END;
CREATE TRIGGER branch_begins_without_tip BEFORE INSERT ON branch
WHEN NEW.tip IS NOT NULL OR NEW.move IS NOT NULL OR NEW.state <> 'live'
    OR EXISTS (SELECT 1 FROM branch WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM branch WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a branch begins without a tip; its first move gives it one'); END;
CREATE TRIGGER tip_moves_with_its_row BEFORE UPDATE OF tip, move ON branch
WHEN (NEW.tip IS NOT OLD.tip OR NEW.move IS NOT OLD.move) AND (
    NEW.move IS OLD.move OR NOT EXISTS (
        SELECT 1 FROM event WHERE seq = NEW.move AND type = 'TipMoved' AND branch = NEW.id
            AND session = NEW.session AND old IS OLD.tip AND new IS NEW.tip))
BEGIN SELECT RAISE(ABORT, 'a tip moves only with its event row'); END;
CREATE TRIGGER branch_ends_with_its_row BEFORE UPDATE OF state ON branch
WHEN NEW.state IS NOT OLD.state AND NEW.move IS OLD.move
BEGIN SELECT RAISE(ABORT, 'a branch ends only with its event row'); END;
CREATE TRIGGER branch_stays_where_it_is BEFORE UPDATE OF id, session ON branch
WHEN NEW.id IS NOT OLD.id OR NEW.session IS NOT OLD.session
BEGIN SELECT RAISE(ABORT, 'a branch stays in its session'); END;
CREATE TRIGGER session_is_kept BEFORE DELETE ON session
BEGIN SELECT RAISE(ABORT, 'sessions are never deleted from the table'); END;
CREATE TRIGGER session_begins_without_head BEFORE INSERT ON session
WHEN NEW.head IS NOT NULL OR NEW.head_move IS NOT NULL
    OR EXISTS (SELECT 1 FROM session WHERE id = NEW.id)
    OR EXISTS (SELECT 1 FROM session WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a session begins without a head; its first move gives it one'); END;
CREATE TRIGGER head_moves_with_its_row BEFORE UPDATE OF head, head_move ON session
WHEN (NEW.head IS NOT OLD.head OR NEW.head_move IS NOT OLD.head_move) AND (
    NEW.head_move IS OLD.head_move OR NOT EXISTS (
        SELECT 1 FROM event WHERE seq = NEW.head_move AND type = 'TipMoved'
            AND session = NEW.id AND head_old IS OLD.head AND head_new IS NEW.head))
BEGIN SELECT RAISE(ABORT, 'a head moves only with its event row'); END;
"""

_TRANSCRIPTS = """
CREATE TABLE transcript_source (
    agent TEXT PRIMARY KEY,
    connected_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE transcript_file (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    path BLOB NOT NULL,
    session TEXT NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    position INTEGER NOT NULL,
    done INTEGER NOT NULL,
    head_length INTEGER NOT NULL,
    head_digest BLOB NOT NULL,
    last_start INTEGER NOT NULL,
    last_length INTEGER NOT NULL,
    last_digest BLOB NOT NULL,
    UNIQUE (agent, path)
) STRICT;
CREATE INDEX transcript_file_by_session ON transcript_file (agent, session);

CREATE TABLE transcript_head (
    session INTEGER PRIMARY KEY REFERENCES session,
    head TEXT
) STRICT;
"""

_CONVERSATIONS = """
CREATE TABLE transcript_conversation (
    agent TEXT NOT NULL,
    path BLOB NOT NULL,
    name TEXT NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (agent, path, name)
) STRICT, WITHOUT ROWID;
"""

MIGRATIONS: tuple[str, ...] = (_TABLES + _APPEND_ONLY + _GATE, _TRANSCRIPTS, _CONVERSATIONS)
"""`MIGRATIONS[n]` leads from schema version n to n + 1; each runs in a transaction of its own."""

SCHEMA_VERSION = len(MIGRATIONS)
