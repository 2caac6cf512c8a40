"""A rank ends with its own status, its libraries' last work done, and without the interpreter's end."""

from __future__ import annotations

import subprocess
import sys

from .nodejobs import ROOT

RANK = """
import atexit, sys
from training.leave import leave

class Late:
    def __del__(self):
        print("the interpreter went down")

late = Late()
atexit.register(print, "a tracker's last line")
{more}
print("no newline", end="")
leave({status})
"""


def left(status: int, more: str = "") -> subprocess.CompletedProcess[str]:
    script = RANK.format(status=status, more=more)
    return subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)


def test_it_ends_with_its_status_and_what_was_registered() -> None:
    for status in (0, 1, 7):
        done = left(status)
        assert (done.returncode, done.stdout) == (status, "no newlinea tracker's last line\n")


def test_what_fails_at_the_end_changes_no_status() -> None:
    done = left(0, more="atexit.register(lambda: 1 / 0)")
    assert done.returncode == 0
    assert done.stdout == "no newlinea tracker's last line\n"
    assert "ZeroDivisionError" in done.stderr


def test_threads_that_go_on_hold_nobody_up() -> None:
    done = left(0, more="import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()")
    assert (done.returncode, done.stdout) == (0, "no newlinea tracker's last line\n")
