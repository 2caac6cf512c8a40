"""The pictures in docs/images, light and dark, of a started service with real runs: python -m tests.e2e.screenshots

--state FOLDER is kept and taken up again, so that a second time the runs are there already.
--preset names what the run in the picture is made of; `tiny` is quick, `smollm2-135m-demo` takes minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil
from playwright.sync_api import Browser, Page, StorageState

from training.spec.mark import MARK

from .browser import chromium
from .person import Person
from .stack import ROOT, Stack, until

IMAGES = ROOT / "docs" / "images"
PATIENCE = 1800  # seconds
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
MODELS = {"tiny": "tiny-llama-5M", "smollm2-135m-demo": "SmolLM2-135M-Instruct"}
RECIPES: dict[str, Any] = {"tiny": {"optimisation": {"max_steps": 60}, "checkpoints": {"every_steps": 20}}}


FAILING = {"optimisation": {"max_steps": 5000}, "checkpoints": {"every_steps": 10}}
SETTLED = """() => {
  const loss = document.querySelector('.chart[data-chart="loss"]');
  return !loss || loss.getBoundingClientRect().top > innerHeight || window.shardboard?.drawn?.loss > 0;
}"""


@dataclass(frozen=True)
class Picture:
    """`width` and `height` in CSS pixels; a phone has two real ones for each."""

    name: str
    path: str
    width: int = 1280
    height: int = 900

    @property
    def scale(self) -> int:
        return 2 if self.width < 600 else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.screenshots", description="Make docs/images.")
    parser.add_argument("--state", type=Path, help="state folder of the service, kept; default: a new one, removed")
    parser.add_argument("--preset", choices=MODELS, default="tiny")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shardboard-pictures-") as new:
        stack = Stack((options.state or Path(new)).resolve())
        try:
            stack.start()
            run, failed, other = finished_run(stack, options.preset), failed_run(stack), other_run(stack)
            take_all(stack, of_runs(stack, run, failed, other))
            with training(stack), waiting(stack):
                take_all(stack, at_work())
        finally:
            stack.stop()
    return 0


def of_runs(stack: Stack, run: int, failed: int, other: int) -> list[Picture]:
    dataset = next(found["id"] for found in stack.api("GET", "/datasets")["items"] if found["name"] == "code-chat")
    return [
        Picture("run", f"/runs/{run}/", height=1000),
        Picture("run-phone", f"/runs/{run}/", width=390, height=844),
        Picture("run-failed", f"/runs/{failed}/", height=1000),
        Picture("compare", f"/runs/compare?run={run}&run={other}", height=1000),
        Picture("checkpoints", f"/runs/{run}/checkpoints/", height=800),
        Picture("dataset", f"/datasets/{dataset}/", height=1000),
        Picture("new-run", f"/runs/new/?from={run}", height=1100),
    ]


def at_work() -> list[Picture]:
    """Return those that show more while a run trains and another waits."""
    wide = [Picture("runs", "/runs/", height=760), Picture("queue", "/queue/", height=500)]
    return [
        *wide,
        Picture("nodes", "/fleet/nodes/", height=580),
        Picture("runs-phone", "/runs/", width=390, height=844),
    ]


def finished_run(stack: Stack, preset: str) -> int:
    """Return the newest run of `preset` that has succeeded and been exported, made where there is none."""
    name = f"{MODELS[preset]} on code chat"
    run = newest(stack, "succeeded", name) or launch(stack, preset, name, RECIPES.get(preset, {}))
    detail = stack.wait_for_state(run, "succeeded", limit=PATIENCE)
    if not detail["exports"]:
        export(stack, run)
    return int(run)


def failed_run(stack: Stack) -> int:
    """Return a run one of whose ranks was killed as the host kills one that takes too much memory."""
    if run := newest(stack, "failed"):
        return run
    run = launch(stack, "tiny", "Tiny, until a rank is killed", FAILING)
    until("a checkpoint", lambda: stack.run(run)["step"] >= 20)
    rank_of(stack, run).kill()
    stack.wait_for_state(run, "failed", limit=PATIENCE)
    return run


def rank_of(stack: Stack, run: int) -> psutil.Process:
    """Return a rank of the run, which runs on this machine."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            env = process.environ()
            job = env.get(MARK, "")
            if job.startswith(str(stack.state)) and f"/runs/{run}/" in job and "LOCAL_RANK" in env:
                return process
    raise LookupError(f"no rank of run {run}")


def other_run(stack: Stack) -> int:
    """Return a run of `tiny` with half of its learning rate."""
    name, recipe = "Tiny, with half the learning rate", RECIPES["tiny"]
    changed = recipe | {"optimisation": recipe["optimisation"] | {"learning_rate": 5e-4}}
    run = newest(stack, "succeeded", name) or launch(stack, "tiny", name, changed)
    stack.wait_for_state(run, "succeeded", limit=PATIENCE)
    return run


def newest(stack: Stack, state: str, name: str = "") -> int | None:
    runs = stack.api("GET", f"/runs?state={state}&limit=200")["items"]
    return next((found["id"] for found in runs if name in found["name"]), None)


def launch(stack: Stack, preset: str, name: str, recipe: dict[str, Any]) -> int:
    order = {
        "name": name, "preset": preset, "recipe": recipe, "model": MODELS[preset], "dataset": "code-chat",
        "cluster": "demo", "launch": True,
    }  # fmt: skip
    return int(stack.api("POST", "/runs", order)["id"])


@contextmanager
def training(stack: Stack) -> Iterator[None]:
    """A run that is at work meanwhile; stopped afterwards."""
    run = launch(stack, "tiny", "Tiny, until somebody stops it", {"optimisation": {"max_steps": 5000}})
    until("a few steps", lambda: stack.run(run)["step"] >= 10)
    yield
    stack.api("POST", f"/runs/{run}/stop")
    stack.wait_for_state(run, "stopped")


@contextmanager
def waiting(stack: Stack) -> Iterator[None]:
    """A run behind the one at work; stopped afterwards."""
    run = launch(stack, "tiny", "Tiny, the next one", {})
    yield
    stack.api("POST", f"/runs/{run}/stop")


def export(stack: Stack, run: int) -> None:
    made = stack.api("POST", f"/runs/{run}/exports", {"dtype": "bfloat16"})

    def ended() -> dict[str, Any] | None:
        seen: dict[str, Any] = stack.api("GET", f"/exports/{made['id']}")
        return seen if seen["state"] in ("ready", "failed") else None

    assert until("the export", ended, limit=PATIENCE)["state"] == "ready"


def take_all(stack: Stack, wanted: list[Picture]) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        session = logged_in(browser, stack.url)
        for picture in wanted:
            for scheme in SCHEMES:
                print(take(browser, session, stack.url, picture, scheme), flush=True)


def logged_in(browser: Browser, url: str) -> StorageState:
    context = browser.new_context()
    Person(context.new_page(), url).log_in()
    state = context.storage_state()
    context.close()
    return state


def take(browser: Browser, session: StorageState, url: str, picture: Picture, scheme: Scheme) -> Path:
    context = browser.new_context(
        storage_state=session, viewport={"width": picture.width, "height": picture.height}, locale="en-GB",
        color_scheme=scheme, device_scale_factor=picture.scale,
    )  # fmt: skip
    page = context.new_page()
    page.goto(url + picture.path)
    settle(page)
    path = IMAGES / f"{picture.name}-{scheme}.png"
    page.screenshot(path=path, animations="disabled")
    context.close()
    return path


def settle(page: Page) -> None:
    """Return when nothing is on its way any more; of the loss, where it is in sight, when it is drawn."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(SETTLED)


if __name__ == "__main__":
    sys.exit(main())
