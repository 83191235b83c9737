"""What the built-in writer keeps, measured on a real memory against labelled conversations.

`labelled` reads the corpus beside this folder (`../writer_corpus`); `written` lets a memory write
it and reads the blocks back; `judging` compares the two; `report` says it; `speed` times the
writer; `locomo_curve` asks how much of LoCoMo's evidence some block cites. `../writer_quality.py`
is what one runs.
"""
