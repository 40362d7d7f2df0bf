"""`python -m uncanny`."""

from uncanny.cli import main

main()
