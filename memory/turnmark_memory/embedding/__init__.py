"""Meaning beside words: documents as vectors, made in the background, derived and optional.

`embedder.py` says what an embedder is and finds the one that is installed; `e5.py` is it.
`documents.py` says which words of a turn or a block are embedded, `frame.py` how an embedder's
space is looked at. `vector_file.py` keeps the vectors (SQLite, `.turnmark/vectors.db`, without
NumPy), `shortlist.py` finds the nearest among many, `nearness.py` brings cosines to recall's common
measure. `meaning.py` is what runs: it embeds what the index has and the file has not, and answers
recall (`turnmark_memory.dense.Dense`).

Promises: deleting the vectors loses nothing; a kill loses at most the text under way; what was
forgotten or removed leaves the file and its free pages; without the extra `[e5]` nothing here
imports NumPy, and recall goes by words.
"""
