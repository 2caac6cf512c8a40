"""Data for training: rows are checked, tokenised once into an artefact, and only read by the ranks.

rows.py      the lines of a file, checked
sequences.py rows to sequences of tokens: what is trained, cut, dropped, packed
artefact.py  the folder that holds them, named by the hash of all that made them
tokenise.py  the command that makes it before the ranks start
read.py      making or finding it, and telling what the data came to
isolation.py whether samples packed into one row really can't see each other
"""

from .artefact import Prepared
from .read import read
from .rows import BadData

__all__ = ["BadData", "Prepared", "read"]
