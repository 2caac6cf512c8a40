"""The checks that come first, of any export: no value is read for them.

keys   names, shapes and dtypes in the files are as the config has them, and no wrapper left its prefix
index  each tensor is in the file that the index names, and in no other; nothing else lies there
"""

from __future__ import annotations

from pathlib import Path

from ..spec.job import ExportJob
from . import flat
from .layout import INDEX
from .sheet import Sheet
from .tensorfile import Unreadable
from .written import WrittenTensors


def check(job: ExportJob, folder: Path, sheet: Sheet) -> bool:
    """Run both; the rest need not be looked at where they don't pass."""
    try:
        return _keys(job, folder, sheet) and _index(job, folder, sheet)
    except Unreadable as error:
        return sheet.add("keys", False, str(error))


def _keys(job: ExportJob, folder: Path, sheet: Sheet) -> bool:
    if names := flat.wrapped(job, folder):
        return sheet.add("keys", False, f"with a wrapper's prefix: {flat.listed(names)}")
    if names := flat.headers_differ(job, folder):
        return sheet.add("keys", False, f"differ in name, shape or dtype: {flat.listed(names)}")
    like = "the checkpoint" if job.adapter == "adapter" else "the config"
    count = len(WrittenTensors(folder).tensors)
    return sheet.add("keys", True, f"{count} tensors, names, shapes and {job.dtype} as {like} has them, no prefix")


def _index(job: ExportJob, folder: Path, sheet: Sheet) -> bool:
    if problems := flat.index_problems(job, folder):
        return sheet.add("index", False, "; ".join(problems[: flat.SHOWN]))
    files = len(WrittenTensors(folder).files)
    what = f"{files} files, as the index has them" if (folder / INDEX).exists() else "one file, which needs no index"
    return sheet.add("index", True, f"{what}; nothing else lies there")
