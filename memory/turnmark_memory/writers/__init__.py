"""Writers: what turns a batch of turns into edits of topics, or into an honest `nothing`.

A writer is given a batch and gives back an answer. It never touches a file, never moves a mark and
has no tools; whether its edits hold is checked by the runtime afterwards. A writer that cannot
answer raises `WriterFailed`, which is never to be taken for `nothing`.

`writer.py` is the interface, `registry.py` makes a writer by its kind. The built-in one needs no
model: `reading.py` goes through a batch, `statements.py` keeps what `sentences.py` cut and the cues
of `english.py` and `chinese.py` know, `exchanges.py` joins a yes with what it answers, `telling.py`
says it in the third person (`english_voice.py`, `chinese_voice.py`) or quotes it (`quoting.py`),
with the dates of `dates.py` and the names of `people.py`, `filing.py` chooses topic and heading,
and `desk.py` makes edits of it, by what `sameness.py` finds the same. A model is asked by
`model_writer.py`: `rules.py` says what it is told, `prompt.py` makes the question, whose size does
not grow with the memory, of lines that nothing can forge (`json_line.py`), and `answer.py` reads
what comes back. Open `builtin.py` or `model_writer.py` next.
"""
