"""The REST API: thin, over the same actions as the pages. Start reading at site.py."""
