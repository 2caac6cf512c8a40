"""What a person typed to ask, kept as typed so that a mistake is shown where it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from training.spec.answer import MODELS, SECONDS, TOKENS, Sampling
from training.spec.lint import Problem, Refused
from webapp.keys import key_of
from webapp.runs.models import Export, Run

from . import choice
from .models import Trial

NUMBERS = {"max_new_tokens": int, "temperature": float, "top_p": float, "seed": int, "seconds": float}
USUAL = {name: str(value) for name, value in Sampling().model_dump().items()} | {"seconds": "120"}


@dataclass
class Form:
    """`models`: "base" and ids of exports. `numbers`: each field of NUMBERS as typed."""

    prompt: str = ""
    system: str = ""
    models: Sequence[str] = ()
    numbers: Mapping[str, str] = field(default_factory=lambda: dict(USUAL))
    most_models: int = MODELS
    most_tokens: int = TOKENS
    most_seconds: int = SECONDS

    @classmethod
    def fresh(cls, exports: Sequence[Export], wanted: str = "") -> Form:
        """The base beside the export that is `wanted`, else beside the newest."""
        keys = [str(export.pk) for export in exports]
        return cls(models=[choice.BASE, *([wanted] if wanted in keys else keys[:1])])

    @classmethod
    def of_trial(cls, trial: Trial) -> Form:
        """What was asked in `trial`, to be asked anew with a change."""
        first = trial.prompts[0]
        said = {turn["role"]: turn["content"] for turn in first.get("messages", [])}
        numbers = {name: f"{value:g}" for name, value in {**trial.sampling, "seconds": trial.seconds}.items()}
        models = [str(one["export"] or choice.BASE) for one in trial.asked]
        return cls(said.get("user") or first.get("text", ""), said.get("system", ""), models, numbers)

    @classmethod
    def posted(cls, data: QueryDict) -> Form:
        typed = {name: str(data.get(name, USUAL[name])).strip() for name in NUMBERS}
        prompt, system = (str(data.get(name, "")).replace("\r\n", "\n") for name in ("prompt", "system"))
        return cls(prompt, system, data.getlist("models"), typed)

    def asked(self, run: Run) -> dict[str, Any]:
        """Return what `actions.ask` takes. Raises Refused."""
        numbers = self._numbers()
        seconds = numbers.pop("seconds")
        return {
            "models": self._models(run),
            "prompts": [prompt_of(run, self.prompt, self.system)],
            "sampling": numbers,
            "seconds": seconds,
        }

    def _numbers(self) -> dict[str, Any]:
        found, problems = {}, []
        for name, kind in NUMBERS.items():
            try:
                found[name] = kind(self.numbers[name])
            except (ValueError, OverflowError):
                problems.append(Problem(name, f"{self.numbers[name][:40]!r} is no number", "Write digits."))
        if problems:
            raise Refused(problems)
        return found

    def _models(self, run: Run) -> list[Export | None]:
        return [exported(run, key) for key in self.models]


def exported(run: Run, key: str) -> Export | None:
    """Return the export that `key` names, None for the base. Raises Refused."""
    if key == choice.BASE:
        return None
    found = Export.objects.filter(checkpoint__attempt__run=run, pk=key_of(key) or 0).first()
    if found is None:
        raise Refused([Problem("models", f"this run has no export {key[:40]!r}", "Choose one from the list.")])
    return found


def prompt_of(run: Run, text: str, system: str = "") -> dict[str, Any]:
    """Return a prompt as the run's rows are: a chat, or a text that is gone on with."""
    if not is_chat(run):
        return {"text": text}
    turns = [("system", system)] if system.strip() else []
    return {"messages": [{"role": role, "content": words} for role, words in [*turns, ("user", text)]]}


def is_chat(run: Run) -> bool:
    return run.recipe.get("data", {}).get("format", "messages") == "messages"
