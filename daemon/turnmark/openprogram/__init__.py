"""Reads what OpenProgram keeps beside its sessions: evidence, topics, marks; changes nothing.

`state.py` finds the parts of a state directory, `archive.py` reads the evidence, `topic_files.py`
the topics, `safe_marks.py` judges which turns are really dealt with, and `plan.py` puts together
what a migration would bring. The sessions themselves are read by the session store's reader.
"""
