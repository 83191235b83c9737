"""Language models, asked one question at a time by the writer, the night and recall."""
