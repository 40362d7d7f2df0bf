"""Data sets from runs, in the forms other tools read, and what people did with them there, back into a run.

`data` is what goes out: records with what reviewers made of them. `formats` has a file a form, which writes
it and reads it back, `run` writes several in one pass, `reading` takes verdicts, texts and boxes back.
"""
