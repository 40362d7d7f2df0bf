"""The audit: how plausible is what a generator makes? MAI, AF and CAP over sets of annotations.

`run.audit` is the door: sources in, `score.result.AuditResult` out.
"""
