"""The main job as a person does it, on two OpenSSH hosts: create, watch, stop, resume, export, download, generate.

The hosts that the demo brings with it train in test_kills.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .person import Person
from .stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.root]
STEPS = 24
RATE = "learning_rate"

GENERATE = """
import json, sys
from transformers import AutoModelForCausalLM, AutoTokenizer
folder = sys.argv[1]
model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype="auto")
tokenizer = AutoTokenizer.from_pretrained(folder)
chat = [{"role": "user", "content": "What does this function do?"}]
ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
out = model.generate(**ids, max_new_tokens=8, do_sample=False)
print(json.dumps({"info": {k: sorted(map(str, v)) for k, v in info.items()}, "dtype": str(model.dtype),
                  "new": out.shape[1] - ids["input_ids"].shape[1], "text": tokenizer.decode(out[0])}))
"""


@pytest.mark.usefixtures("openssh")
def test_from_log_in_to_a_model_that_generates(stack: Stack, person: Person, tmp_path: Path) -> None:
    run = person.create_run(
        "journey", "tiny", "tiny-llama-5M", "openssh", "code-chat", **{"optimisation.max_steps": str(STEPS)}
    )
    person.page.evaluate("window.unreloaded = true")
    person.wait_drawn(2)
    assert person.page.evaluate("window.unreloaded") is True, "points have to arrive without a reload"
    person.stop()
    person.see_state("stopped")
    stopped_at = stack.run(run)["step"]
    assert 2 <= stopped_at < STEPS

    person.resume()
    person.see_state("succeeded")
    person.wait_drawn(STEPS)
    told = stack.run(run)
    assert told["step"] == STEPS
    assert told["reason"] == "completed"
    series = stack.api("GET", f"/runs/{run}/series/loss?points=1500")
    assert series["steps"] == [float(step) for step in range(1, STEPS + 1)]
    assert series["values"][-1] < series["values"][0], "it has to learn"
    points = {name: person.page.evaluate(f"window.shardboard.points('{name}')") for name in (RATE, f"planned/{RATE}")}
    assert points[RATE] == points[f"planned/{RATE}"], "drawn before the launch, true to the last digit after a resume"

    person.export("bfloat16")
    folder = unpack(person.download(tmp_path), tmp_path)
    said = json.loads(subprocess.run(
        [sys.executable, "-c", GENERATE, str(folder)], check=True, capture_output=True, text=True
    ).stdout.splitlines()[-1])  # fmt: skip
    assert not any(said["info"].values()), said
    assert said["dtype"] == "torch.bfloat16"
    assert 1 <= said["new"] <= 8


def unpack(archive: Path, folder: Path) -> Path:
    """Return the one folder in the archive, unpacked as a person would."""
    inside = folder / "unpacked"
    inside.mkdir()
    subprocess.run(["tar", "-xf", str(archive), "-C", str(inside)], check=True)
    (found,) = inside.iterdir()
    return found
