"""The page on which people judge findings: queue, verdicts, edits, boxes."""
