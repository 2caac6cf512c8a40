"""What runs on a node: `python -m training <command> ...`; `--help` lists the commands.

Each command is a function of its own module, imported only when asked for, so that the list (and every
command that needs no torch) works on a bare node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

# name: (module:function taking the argument list and returning the exit status, one line of help)
COMMANDS = {
    "export": ("training.export.cli:main", "turn a sharded checkpoint into a proven model folder"),
    "answer": ("training.answer.cli:main", "let models answer prompts, side by side"),
    "plan-export": ("training.export.planning:main", "say what an export will be, and why not, without writing it"),
    "deliver": ("training.deliver.cli:main", "bring a proven export to a folder, to S3 or to a hub"),
    "serving": ("training.serving.cli:main", "say how an exported folder is served with transformers, vLLM, Ollama"),
    "preflight": ("training.preflight:main", "say whether this node can train"),
    "provision": ("training.provision.cli:main", "make an interpreter with the pinned packages, in the background"),
    "checkpoint": ("training.saving.cli:main", "list, pin, unpin or delete an attempt's checkpoints"),
    "lend": ("training.transfer.lend:main", "let another node take files of a folder, over a private SSH server"),
    "lend-keep": ("training.transfer.keep:main", "stay with that server until it is not needed"),
    "lend-serve": ("training.transfer.serve:main", "what that server runs: send the files that were lent"),
    "fetch-key": ("training.transfer.fetch:key", "make the key by which this node takes files of another"),
    "fetch": ("training.transfer.fetch:main", "begin to take files that another node lends"),
    "fetch-run": ("training.transfer.fetch:run", "take them, and say how it ended"),
    "reach": ("training.reach:main", "say which hosts this one can reach, and which reach it"),
    "all-reduce": ("training.allreduce:main", "add up one small tensor over all hosts"),
    "free-port": ("training.ports:main", "name a free TCP port"),
    "start": ("training.start:main", "start a job's supervisor in the background, once"),
    "supervise": ("training.supervise:main", "run one job to its end and say how it ended"),
    "again": ("training.again:main", "ready an ended job for a new start in its folder"),
    "status": ("training.status:main", "say how a job stands"),
    "follow": ("training.follow:main", "give what many growing files gain, over one pipe"),
    "orphans": ("training.orphans:main", "say what runs below a scratch folder, whoever started it"),
    "signal": ("training.signals:main", "stop a job, saving, or end it now"),
    "stop-all": ("training.signals:stop_all", "end every job of a scratch folder"),
    "sample-model": ("training.samples.model:main", "build a small real model folder, offline"),
    "sample-data": ("training.samples.data:main", "build a small real data set, offline"),
    "resize-embeddings": ("training.resize:main", "give a model a row for each of its tokenizer's entries"),
    "tokenise": ("training.data.tokenise:main", "make a job's tokens, once, before its ranks start"),
    "sft": ("training.byhand.cli:main", "fine-tune by hand: sft recipe.yaml; the ranks are started with it, too"),
    "preset": ("training.describe:preset", "print a preset's recipe as YAML, to begin from"),
    "schema": ("training.describe:schema", "print the recipe's JSON Schema, or its description as Markdown"),
}


def usage() -> str:
    """Return the list of commands, one a line."""
    lines = [f"  {name:<17} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["usage: python -m training <command> ...", "", *lines])


def command(name: str) -> Callable[[list[str]], int]:
    """Import and return the function behind `name`."""
    module, function = COMMANDS[name][0].split(":")
    found: Callable[[list[str]], int] = getattr(import_module(module), function)
    return found


def main(argv: list[str]) -> int:
    """Run one command; 2 where there is none of that name."""
    if argv[:1] in (["--help"], ["-h"]):
        print(usage())
        return 0
    if not argv or argv[0] not in COMMANDS:
        print(f"no command is called {argv[0]!r}\n" if argv else "a command is missing\n", usage(), file=sys.stderr)
        return 2
    return command(argv[0])(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
