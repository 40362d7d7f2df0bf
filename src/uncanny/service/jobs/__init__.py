"""From a job in the queue to a child process that runs a command of uncanny, and back."""
