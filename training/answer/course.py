"""How far a trial has come, told in its events: who is loaded where, what was said, why it ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..journal import Journal
from ..spec.answer import AnswerJob
from ..spec.events import Kind
from ..spec.faults import Reason

EOS, LENGTH, TIME, STOP = "eos", "tokens", "time", "stop"
ENDS = {TIME: Reason.TIME_LIMIT, STOP: Reason.STOPPED}


@dataclass(frozen=True)
class Said:
    """A whole answer. `first`: seconds to its first token, None without one; `stopped_by`: one of the words above."""

    text: str
    tokens: int
    seconds: float
    first: float | None
    stopped_by: str


@dataclass
class Now:
    """The answer in hand: which, since when, and what of it was told."""

    doing: str = "starting"
    model: int = 0
    prompt: int = 0
    began: float = 0.0
    text: str = ""
    tokens: int = 0
    first: float | None = None


class Course:
    """Writes the events. The guard's thread may end it at any moment: after that nothing more is told.

    `show` gets what is said as well, with who says it, for a terminal.
    """

    def __init__(
        self,
        job: AnswerJob,
        journal: Journal,
        clock: Callable[[], float] = time.monotonic,
        show: Callable[[str], None] | None = None,
    ):
        self.job, self.journal, self.clock = job, journal, clock
        self._show = show or (lambda text: None)
        self.now = Now()
        self.cut_by: tuple[Reason, str] | None = None
        self._left = [(m, p) for m in range(len(job.models)) for p in range(len(job.prompts))]
        self._lock = threading.RLock()
        self._over = False
        self._cut: list[str] = []  # by what answers ended that did not come to an end of their own

    @property
    def left(self) -> int:
        """How many answers are still to come, the one in hand among them."""
        return len(self._left)

    def doing(self, what: str) -> None:
        """Say what the time goes to, should it run out now."""
        with self._lock:
            self.now = Now(what)

    def model(self, index: int, **facts: Any) -> None:
        self._emit(Kind.MODEL, model=index, **facts)

    def begin(self, model: int, prompt: int) -> None:
        with self._lock:
            what = f"reading prompt {prompt + 1} with {self.job.models[model].name}"
            self.now = Now(what, model, prompt, self.clock())
            self._show(f"\n== {self.job.models[model].name}, prompt {prompt + 1}\n")

    def piece(self, text: str, tokens: int) -> None:
        """Tell some more of the answer in hand; `tokens`: how many it has by now."""
        with self._lock:
            now = self.now
            now.doing = f"{self.job.models[now.model].name} answered prompt {now.prompt + 1}"
            if now.first is None:
                now.first = self.clock() - now.began
            now.text, now.tokens = now.text + text, tokens
            self._show(text)
            self._emit(Kind.TOKEN, model=now.model, prompt=now.prompt, text=text, tokens=tokens)

    def answer(self, model: int, prompt: int, said: Said) -> None:
        """Tell a whole answer."""
        with self._lock:
            if (model, prompt) not in self._left:
                return
            self._left.remove((model, prompt))
            if said.stopped_by in ENDS:
                self._cut.append(said.stopped_by)
            rate = said.tokens / said.seconds if said.tokens and said.seconds > 0 else None
            self._emit(
                Kind.ANSWER,
                model=model,
                prompt=prompt,
                text=said.text,
                tokens=said.tokens,
                seconds=said.seconds,
                tokens_per_second=rate,
                first_token_seconds=said.first,
                stopped_by=said.stopped_by,
            )

    def give_up(self, why: str) -> None:
        """Tell that all answers that are left will not come, or not to their end."""
        with self._lock:
            now, doing = self.now, self.now.doing
            for model, prompt in list(self._left):
                if now.began and (model, prompt) == (now.model, now.prompt):
                    said = Said(now.text, now.tokens, self.clock() - now.began, now.first, why)
                else:
                    said = Said("", 0, 0.0, None, why)
                self.answer(model, prompt, said)
            told = "stopped on request" if why == STOP else f"the time of {self.job.seconds:g} s was over"
            self.cut_by = ENDS[why], f"{told} while {doing}"

    def tell_cut(self) -> None:
        """Say why the trial is not whole where single answers had no time, or were stopped."""
        if self._cut and self.cut_by is None:
            why = STOP if STOP in self._cut else TIME
            count = f"{len(self._cut)} of {len(self.job.models) * len(self.job.prompts)}"
            time = f"for {count} answers their share of the {self.job.seconds:g} s was too short"
            self.cut_by = ENDS[why], "stopped on request" if why == STOP else time

    def cut(self, why: str) -> None:
        """End at once: for the guard's thread."""
        with self._lock:
            if not self._over:
                self.give_up(why)
                assert self.cut_by is not None
                self.end(*self.cut_by)

    def end(self, reason: Reason, text: str) -> None:
        with self._lock:
            self._show(f"\n== {text or 'all answered'}\n")
            self._emit(Kind.FINISHED, reason=reason, text=text)
            self._over = True

    def _emit(self, kind: Kind, **data: Any) -> None:
        with self._lock:
            if not self._over:
                self.journal.emit(kind, **data)
