"""Lend files of a folder to one key: `python -m training lend`, told by a spec.transfer.Loan on standard input.

Prints a spec.transfer.Lent once a private OpenSSH server listens. A keeper stays with it in the background, and ends
it when the place's `done` file appears or when nobody has been connected for a while.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from ..spec.ports import free_port
from ..spec.transfer import Lent, Loan
from .place import Place, make_key, write_private

ROOT = Path(__file__).resolve().parents[2]
WHERE = "/usr/sbin:/usr/local/sbin:/sbin"  # seldom on a login's path
READY_SECONDS = 10.0
TRIES = 3  # another process may take the port first
POLL_SECONDS = 0.05
CONFIG = """\
Port {port}
ListenAddress {address}
HostKey "{host_key}"
AuthorizedKeysFile "{authorized}"
PidFile none
UsePAM no
StrictModes no
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
DisableForwarding yes
PermitTTY no
PermitUserRC no
LoginGraceTime 20
MaxStartups 4
MaxSessions 1
ClientAliveInterval 15
ClientAliveCountMax 4
ForceCommand {command}
"""


def main(argv: list[str]) -> int:
    """Print where it listens; 1 with the reason where it can't be."""
    loan = Loan.model_validate_json(sys.stdin.buffer.read())
    place = Place(loan.place)
    try:
        print(lend(loan, place).model_dump_json())
    except OSError as error:
        place.remove()
        print(f"lend: {error}", file=sys.stderr)
        return 1
    return 0


def lend(loan: Loan, place: Place) -> Lent:
    """Start the server and its keeper; raise OSError."""
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:{WHERE}")
    if sshd is None:
        raise OSError("there is no sshd on this node")
    place.make()
    public = make_key(place.host_key)
    write_private(place.authorized, f"restrict {loan.key}\n")
    write_private(place.listing, json.dumps({"folder": loan.folder, "names": loan.names}))
    for _ in range(TRIES):
        port = free_port(loan.address)
        write_private(place.config, _config(loan, place, port))
        keeper = _keep(sshd, place, loan.idle_seconds)
        if _listens(loan.address, port, keeper):
            return Lent(port=port, user=pwd.getpwuid(os.geteuid()).pw_name, host_key=public)
    raise OSError(f"sshd does not listen: {_last_words(place)}")


def _config(loan: Loan, place: Place, port: int) -> str:
    serve = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "training", "lend-serve", str(place.path)]
    authorized = str(place.authorized).replace("%", "%%")  # sshd puts names in place of those
    return CONFIG.format(
        port=port, address=loan.address, host_key=place.host_key, authorized=authorized, command=shlex.join(serve)
    )


def _keep(sshd: str, place: Place, idle: float) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "training", "lend-keep", sshd, str(place.path), str(idle)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with place.log.open("wb") as log:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=env, start_new_session=True
        )


def _listens(address: str, port: int, keeper: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and keeper.poll() is None:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return True
        except OSError:
            time.sleep(POLL_SECONDS)
    keeper.terminate()
    keeper.wait()
    return False


def _last_words(place: Place) -> str:
    lines = place.log.read_text("utf-8", "replace").strip().splitlines()
    return "; ".join(lines[-3:])[:300] or "it says nothing"
