"""Can people tell edited images from originals, and say where? After the human study of SAGI.

`data` has what people said, `score` makes figures of it, `result` and `report` show them. The page on which
people judge is in `uncanny.service.people`.
"""
