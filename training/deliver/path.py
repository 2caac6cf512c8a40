"""To a folder on the node or on storage mounted there.

Work goes on in `<folder>.delivery/new`, beside the place, and gets its name in one rename when every file was read
back and has its hash. A copy that was killed leaves that folder; the next one keeps the files in it that are whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..durable import sync
from ..progress import Meter
from ..spec.deliver import WORKING, PathTarget, refusals
from ..spec.deliver.folder import MARK, NEW, NO_FILE, OLD, File, is_foreign, lacking, unfit
from ..spec.faults import Reason
from ..spec.lint import Refused
from .ends import Failed, failed, refuse
from .result import Delivered, Teller
from .source import Source, blocks, changed, hashed
from .swap import exchange


def send(source: Source, target: PathTarget, teller: Teller, *, replace: bool) -> Delivered:
    """Copy; raise Refused before anything is written, Failed or OSError afterwards."""
    folder = Path(target.folder)
    result = Delivered(where=target.place, url=folder.as_uri())
    _check(source, folder)
    if _is_there(source, folder, teller, replace):
        result.bytes_skipped, result.already, result.note = source.size, True, "it was there already"
        _forget(folder)
        return result
    with _working(folder) as work:
        _fill_or_forget(source, folder, work, result, teller)
        result.replaced = folder.is_dir() and any(folder.iterdir())
        exchange(work / NEW, folder, work / OLD)
        _clear(work)
    sync(folder.parent)
    return result


def _check(source: Source, folder: Path) -> None:
    if not folder.parent.is_dir():
        raise Refused([refusals.no_parent(str(folder.parent))])
    real, ours = folder.parent.resolve() / folder.name, source.folder.resolve()
    if real == ours or ours in real.parents or real in ours.parents:
        raise refuse("target.folder", f"{folder} lies in the export's own folder, or around it", "Choose another.")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Refused([refusals.no_folder(str(folder))])
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        why = f"this user may not write in {folder.parent}"
        raise failed(Reason.PERMISSION, "target.folder", why, "Let it, or choose another folder.")


def _is_there(source: Source, folder: Path, teller: Teller, replace: bool) -> bool:
    """Return whether the folder holds just this content; raise Refused where it holds other and may not be replaced."""
    present = _sizes(folder) if folder.is_dir() else {}
    if not present:
        return False
    if not unfit(present, source.all) and not lacking(present, source.all):
        meter = teller.meter("verify", source.size)
        if all(_is_right(folder / file.name, file, meter.add) for file in source.all):
            meter.tell()
            return True
    if not replace:
        raise Refused([refusals.other_content(str(folder))])
    return False


def _sizes(folder: Path) -> dict[str, int]:
    """Return bytes by name, as training.spec.deliver.folder has it."""
    found = {path.name: path.lstat() for path in folder.iterdir()}
    return {name: about.st_size if stat.S_ISREG(about.st_mode) else NO_FILE for name, about in found.items()}


def _is_right(path: Path, file: File, on_bytes: Callable[[int], None]) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != file.size:
        return False
    return hashed(path, on_bytes) == file.sha256


@contextmanager
def _working(folder: Path) -> Iterator[Path]:
    """Give the locked working folder; it stays, for the next try, where the block ends badly."""
    work = folder.with_name(folder.name + WORKING)
    if os.path.lexists(work) and (work.is_symlink() or not work.is_dir() or is_foreign(os.listdir(work))):
        raise Refused([refusals.in_the_way(str(folder))])
    try:
        work.mkdir(exist_ok=True)
    except FileNotFoundError:  # the folder around it was there a moment ago: /proc and its like take no folder
        raise Failed(Reason.DESTINATION, refusals.takes_none(str(folder.parent))) from None
    lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _lock(lock, folder)
        (work / MARK).write_bytes(b"")  # a worker that thought the folder its own finds that it is not any more
        if folder.exists():  # or else it is all that there is of what was to be replaced
            shutil.rmtree(work / OLD, ignore_errors=True)
        if (work / NEW).is_symlink():
            (work / NEW).unlink()
        (work / NEW).mkdir(exist_ok=True)
        yield work
    finally:
        os.close(lock)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refuse("target.folder", f"another delivery to {folder} is at work", "Wait for its end.") from None
    except OSError:  # a network file system without locks: the final rename still lets one win whole
        return


def _forget(folder: Path) -> None:
    """Remove what a delivery left that was killed after it had put the folder into its place."""
    work = folder.with_name(folder.name + WORKING)
    if (work / MARK).is_file():
        _clear(work)


def _clear(work: Path) -> None:
    """Remove the working folder, its mark last: killed before, the next delivery still knows it for ours."""
    for path in work.iterdir():
        if path.name != MARK:
            _remove(path)
    shutil.rmtree(work)


def _fill_or_forget(source: Source, folder: Path, work: Path, result: Delivered, teller: Teller) -> None:
    """Fill the folder; where the export itself is found damaged no later try can go on, and what has come is removed.

    What had the place before stays, where a kill left it in the working folder alone.
    """
    try:
        _fill(source, work / NEW, result, teller)
    except Failed as error:
        if error.reason == Reason.DATA:
            shutil.rmtree(work / NEW)
            if folder.exists() or not (work / OLD).exists():
                _clear(work)
        raise


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _fill(source: Source, new: Path, result: Delivered, teller: Teller) -> None:
    for name in unfit(_sizes(new), source.all):
        _remove(new / name)
    _check_disk(source, new)
    meter = teller.meter("send", source.size)
    written = [file for file in source.all if not _stays(file, new, result, meter)]
    for file in written:
        _copy(source, file, new / file.name, meter)
        result.bytes_sent += file.size
    meter.tell()
    meter = teller.meter("verify", sum(file.size for file in written))
    for file in written:
        if hashed(new / file.name, meter.add) != file.sha256:
            (new / file.name).unlink()
            raise Failed(Reason.DESTINATION, refusals.read_back(file.name))
    meter.tell()
    sync(new)


def _stays(file: File, new: Path, result: Delivered, meter: Meter) -> bool:
    """Whether an earlier try brought this file whole; what it brought of others is written anew."""
    done = meter.done
    if _is_right(new / file.name, file, meter.add):
        result.bytes_skipped += file.size
        return True
    meter.done = done
    (new / file.name).unlink(missing_ok=True)
    return False


def _check_disk(source: Source, new: Path) -> None:
    there = sum(path.stat().st_size for path in new.iterdir())
    needed, free = source.size - there, shutil.disk_usage(new).free
    if needed > free:
        raise Failed(Reason.DISK_FULL, refusals.no_room(str(new.parent.parent), needed, free))


def _copy(source: Source, file: File, path: Path, meter: Meter) -> None:
    """Write one file, hashed on the way and flushed; raise Failed, leaving none, where it changed since its proof.

    Never a link: what happens to the export later must not reach the copy.
    """
    if file == source.marker:
        path.write_bytes(source.sums)
        meter.add(file.size)
        return sync(path)
    digest = hashlib.sha256()
    with source.open(file) as reader, path.open("wb", buffering=0) as writer:
        for block in blocks(reader):
            digest.update(block)
            _write(writer.fileno(), block)
            meter.add(len(block))
        os.fsync(writer.fileno())
    if digest.hexdigest() != file.sha256:
        path.unlink()
        raise changed(file)


def _write(handle: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(handle, view) :]
