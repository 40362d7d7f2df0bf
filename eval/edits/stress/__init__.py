"""Where a detector is blind: its predictions against what is known of each edit."""
