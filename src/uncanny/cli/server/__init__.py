"""`--server`: commands that a service runs, and what comes home of them."""
