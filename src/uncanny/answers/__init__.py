"""Reading model answers: from whatever text came back to validated items, or to one `AnswerError`.

`read_list(text, form)` reads a list; `uncanny.answers.forms` holds the forms of the pipeline's steps, also as
JSON schema for backends that can constrain an answer; `uncanny.answers.verdicts` reads verdicts.
"""
