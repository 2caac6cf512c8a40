"""Reading a distributed checkpoint's files: which bytes are which numbers, and are all bytes what was written?"""
