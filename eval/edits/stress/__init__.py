"""Where a detector is blind: its predictions against what is known of each edit.

A folder of its own, with `data`, `score` and `report` as a protocol has them: measuring reads images, this
reads tables, of edits and of detectors. `compress` makes the copies that predictions are compared on.
"""
