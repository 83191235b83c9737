"""What recall finds, measured on a real memory: two sets of questions, how to ask, how to count.

`corpus` says what a set is; `bilingual` and `locomo` read one each; `built` makes a memory of it;
`asking` asks; `metrics` counts; `report` says it. `../recall_quality.py` is what one runs.
"""
