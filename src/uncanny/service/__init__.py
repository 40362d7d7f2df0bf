"""What is served over HTTP to people with a browser. Needs the extra `review`."""
