"""Proofs by many trials, too long for every test run: each is a command, of which the tests run a few trials."""
