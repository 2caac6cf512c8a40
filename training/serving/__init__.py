"""What an exported folder says of itself, for whoever serves it: see cli."""
