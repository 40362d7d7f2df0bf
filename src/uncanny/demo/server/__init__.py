"""The fake server: `app` runs it, `openai` and `anthropic` are its APIs, `faults` its faults on purpose."""
