"""What people ask of checkpoints, done on their nodes."""
