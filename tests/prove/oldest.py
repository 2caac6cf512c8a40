"""Exports in the oldest transformers they are claimed to load in, and in ours: python -m tests.prove.oldest

For each architecture of training.export.older.OLDEST a small model with random weights, none of its settings the
class's default, is saved by today's transformers, checkpointed, and exported in fp32 and in bf16. Two fresh processes
load every export, one with the old version and one with ours: strictly, with the dtype that was chosen, the same
tokens, special tokens and chat. The goal for logits is no difference at all in fp32, and in bf16 at most 4 units in the
last place of the largest logit.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.export import older
from training.spec.job import ExportJob

from . import versions

DTYPES = ("float32", "bfloat16")
ROUNDING = 4 * 2**-8  # of the largest logit: bf16 has 8 bits, the first of them not stored
SEEN = ("dtype", "ids", "text", "special", "chat", "eos")
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 1_000_000.0}
ROPE = {"LlamaForCausalLM": LLAMA3}


@dataclass(frozen=True)
class Compared:
    """One export in both versions. `difference`, `allowed`: of a logit; `wrong`: what else differs, in words."""

    name: str
    dtype: str
    version: str
    difference: float
    allowed: float
    wrong: list[str]

    @property
    def holds(self) -> bool:
        return not self.wrong and self.difference <= self.allowed

    def __str__(self) -> str:
        other = f"; {'; '.join(self.wrong)}" if self.wrong else "; strict, tokens and chat the same"
        goal = f"goal at most {self.allowed:g}" if self.allowed else "goal 0"
        end = "holds" if self.holds else "falls short"
        return (
            f"{self.name} {self.dtype} in {self.version}: largest difference of a logit {self.difference:g}{other};"
            f" {goal}: {end}"
        )


def main(argv: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="shardboard-oldest-") as folder:
        results = list(every(Path(folder)))
    good = sum(result.holds for result in results)
    end = "holds" if good == len(results) else "falls short"
    print(f"exports that are the same in the oldest version: {good}; goal {len(results)}: {end}")
    return 0 if good == len(results) else 1


def every(root: Path) -> Iterator[Compared]:
    for version in sorted(set(older.OLDEST.values())):
        names = [name for name, oldest in older.OLDEST.items() if oldest == version]
        exports = [(name, dtype, exported(root, name, dtype)) for name in names for dtype in DTYPES]
        for result in compared(exports, version, root):
            print(result, flush=True)
            yield result


def compared(exports: list[tuple[str, str, Path]], version: str, scratch: Path) -> Iterator[Compared]:
    """Yield the comparison of each (name, dtype, folder)."""
    from safetensors.torch import load_file

    folders = [folder for _, _, folder in exports]
    ours = versions.look(folders, scratch / "ours.safetensors")
    theirs = versions.look(folders, scratch / "theirs.safetensors", versions.installed(version))
    assert (theirs["version"], ours["version"] != version) == (version, True)
    logits = load_file(scratch / "ours.safetensors"), load_file(scratch / "theirs.safetensors")
    for number, (name, dtype, _) in enumerate(exports):
        a, b = (found[str(number)] for found in logits)
        allowed = 0.0 if dtype == "float32" else ROUNDING * float(a.abs().max())
        wrong = differences(ours["folders"][number], theirs["folders"][number], dtype)
        yield Compared(name, dtype, version, float((a - b).abs().max()), allowed, wrong)


def differences(ours: dict[str, Any], theirs: dict[str, Any], dtype: str) -> list[str]:
    found = [f"{who} {side['loading']}" for who, side in (("ours", ours), ("old", theirs)) if side["loading"]]
    found += [f"{name} differ: {ours[name]!r}, {theirs[name]!r}" for name in SEEN if ours[name] != theirs[name]]
    return found + ([f"dtype {theirs['dtype']}"] if theirs["dtype"] != f"torch.{dtype}" else [])


def exported(root: Path, name: str, dtype: str) -> Path:
    """Return the folder of an export of a small model of this architecture."""
    from training.export import cli

    base = root / name / "base"
    if not base.exists():
        _base(base, name)
        _checkpoint(base, root / name / "checkpoint-7")
    job = ExportJob(
        checkpoint=str(root / name / "checkpoint-7"), model=str(base), dtype=dtype,  # type: ignore[arg-type]
        out=str(root / name / dtype), events=str(root / name / f"{dtype}.jsonl"),
    )  # fmt: skip
    assert cli.run(job) == 0, Path(job.events).read_text()
    return Path(job.out)


def _base(folder: Path, name: str) -> None:
    """Save a model of two layers as today's transformers does, its settings unlike its class's defaults."""
    import torch
    import transformers

    from training.samples import tiny

    folder.mkdir(parents=True)
    tiny.build(folder)
    config = getattr(transformers, name.removesuffix("ForCausalLM") + "Config")(
        vocab_size=tiny.VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=512, rms_norm_eps=3e-5, bos_token_id=1,
        eos_token_id=2, pad_token_id=3, tie_word_embeddings=True, rope_parameters=dict(ROPE.get(name, PLAIN)),
    )  # fmt: skip
    torch.manual_seed(1)
    getattr(transformers, name)(config).save_pretrained(folder)


def _checkpoint(base: Path, folder: Path) -> None:
    """Write what training saves of this model: fp32 masters, a node with one rank."""
    import torch
    import torch.distributed.checkpoint as dcp
    from transformers import AutoModelForCausalLM

    from tests.training.sharded import sign
    from training.export.manifest import MODEL_FOLDER

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    for tensor in model.state_dict().values():
        tensor.add_(0.01 * torch.randn_like(tensor))  # masters are no numbers of the base
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder / MODEL_FOLDER, no_dist=True)
    sign(folder, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
