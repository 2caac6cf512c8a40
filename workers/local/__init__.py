"""The whole of Shardboard on one machine, for a first look, for development and for end-to-end tests."""
