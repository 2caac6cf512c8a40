"""Bring a proven export elsewhere: to a folder, to S3-compatible storage, to a hub. See cli."""
