"""Read what was put into a job folder; raise Refused where it can't be run from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pydantic import ValidationError

from .spec import envfile
from .spec.folder import JobFolder
from .spec.job import Job
from .spec.lint import Problem, Refused


def read_job(folder: JobFolder) -> Job:
    """Return job.json; raise Refused."""
    try:
        return Job.model_validate_json(Path(folder.job).read_bytes())
    except FileNotFoundError:
        raise Refused([Problem("job.json", f"{folder.path} has none", "Put the job's files there first.")]) from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise Refused(
            [Problem("job.json " + ".".join(map(str, e["loc"])), e["msg"], "Correct the file.") for e in found]
        ) from None


def read_env(folder: JobFolder) -> dict[str, str]:
    """Return the env file's settings, none where there is no file; raise Refused where others may read it."""
    path = Path(folder.env)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    with os.fdopen(file, encoding="utf-8", newline="") as opened:
        about = os.fstat(file)
        if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or about.st_uid != os.geteuid():
            raise Refused([Problem("env", "other users may read or write this file", f"chmod 600 {path}")])
        return envfile.parse(opened.read())
