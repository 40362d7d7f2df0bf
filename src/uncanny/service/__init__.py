"""What is served over HTTP: the service with its jobs, its interface and pages, and pages for one run.

Needs the extra `service`, pages for one run only `review`, and `client` neither.
"""
