"""What an audit reads: sources of annotations, what is kept of them, and whether they were made alike."""
