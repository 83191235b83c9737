"""Writers: what turns a batch of turns into edits of topics, or into an honest `nothing`.

A writer is given a batch and gives back an answer. It never touches a file, never moves a mark and
has no tools; whether its edits hold is checked by the runtime afterwards. A writer that cannot
answer raises `WriterFailed`, which is never to be taken for `nothing`.

`writer.py` is the interface, `registry.py` makes a writer by its kind. The built-in one needs no
model: `sentences.py` cuts a turn into sentences, `statements.py` keeps those that state something
(cues per language in `english.py` and `chinese.py`), `dates.py` resolves relative dates,
`quoting.py` frames the words as a quotation, `filing.py` chooses topic and heading, and
`builtin.py` puts them together. A model is asked by `model_writer.py`: `rules.py` says what it is
told, `prompt.py` makes the question, whose size does not grow with the memory, of lines that
nothing can forge (`json_line.py`), and `answer.py` reads what comes back. Open `builtin.py` or
`model_writer.py` next.
"""
