"""A folder of wheels: one small real wheel for each pinned package that training needs, for pip without a network."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pinned() -> dict[str, str]:
    """Return name -> version of training/requirements.txt."""
    lines = (ROOT / "training" / "requirements.txt").read_text("utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def wheel_name(name: str, version: str) -> str:
    return f"{re.sub('[-.]', '_', name)}-{version}-py3-none-any.whl"


def make_wheel(folder: Path, name: str, version: str) -> Path:
    module = re.sub("[-.]", "_", name)
    info = f"{module}-{version}.dist-info"
    files = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / wheel_name(name, version)
    with zipfile.ZipFile(path, "w") as archive:
        for where, content in files.items():
            archive.writestr(where, content)
    return path


def make_wheels(folder: Path) -> Path:
    """Return the folder, with all of them."""
    folder.mkdir()
    for name, version in pinned().items():
        make_wheel(folder, name, version)
    return folder
