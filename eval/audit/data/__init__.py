"""What an audit reads, and what is kept of it."""
