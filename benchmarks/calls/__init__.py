"""What a call costs us, and whether calls keep a server busy."""
