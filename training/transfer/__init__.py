"""Files go from node to node: a private OpenSSH server for the time of it, read only, one key, hashes. No torch."""
