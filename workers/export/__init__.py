"""Exports, a job of one node each."""
