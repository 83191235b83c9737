"""Language models, asked one question at a time by the writer, the night and recall.

A model gives an answer or fails with `WriterFailed`: there is no third end, and a failure says
whether the question may be at fault. It has no tools and no session. What an answer means is its
asker's to judge; `answer_object.py` finds the one JSON object in it, or says why there is none.

`model.py` is the interface, `registry.py` makes the models that the configuration names.
`openai.py` and `anthropic.py` speak to APIs through `endpoint.py`: deadlines for each step, an
answer's size, and a sentence for each way to fail (`statuses.py`). `forms.py` remembers how
strictly a server lets a model be held to a shape, `spoken.py` leaves out what a model thought,
`keys.py` finds an API's key. `command.py` asks a program. Open `model.py` first, then `openai.py`.
"""
