"""Reads other agents' transcripts, and says what was said there as turns of a DAG.

A reader is pure: files go in, `ReadSession`s come out, nothing is appended and no file is changed.
`reader.py` holds the interface that all readers share, `recognise.py` finds transcripts and the
reader for each, `json_lines.py` reads lines without losing a file to one bad byte. An agent's own
rules live in a package of its name, beginning with its `reader.py`.

Files that are still written are followed: `tail.py` decides what to look at, `live.py` holds the
interface that a reader offers for it (`codex/live.py` shows it, on what `growing.py` gives all),
`line_file.py` reads a file as far as its lines have ended, `checkpoints.py` says how far each is in
the store. Rows of a database change where they are: `conversation_tail.py` follows those,
`database_live.py` holds the interface (`hermes/database.py` shows it), `database_file.py` opens
another program's database without a trace, `conversation_checkpoints.py` tells what of it is kept.

The same file has the same role in every package: `records.py` or `entries.py` reduce one record, as
the agent calls it, `words.py` says who said what in it, `files.py` and `tables.py` what one file or
database holds. `graph.py`, `chain.py` and `set.py` resolve all of it together, and `sessions.py`
makes what a reader gives back. `live.py` follows files, `database.py` databases. All share
`fields.py`, `moments.py` and `ids.py` for what may stand in a field, and `ordering.py` for graphs.

What readers promise: every branch is kept, never one chosen; a prefix that several files share is
read once; noise keeps the chain but is no speech; one bad record costs one warning.
"""
