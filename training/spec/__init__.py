"""The vocabulary that nodes and the service share. Imports no torch, no django, nothing else of ours."""
