"""One follower reads what many runs write."""
