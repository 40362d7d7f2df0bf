"""From what was read to a leaderboard: resampling, the order, the result and its forms."""
