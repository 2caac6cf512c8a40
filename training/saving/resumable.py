"""An SFTTrainer that saves through a Saver and goes on from a checkpoint part by part."""

from __future__ import annotations

import copy
import io
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy
import torch
from accelerate.utils import is_peft_model, load_fsdp_optimizer
from transformers import TrainerCallback
from trl import SFTTrainer

from ..adapters import state as adapter
from ..adapters.names import CONFIG
from ..adapters.stored import config_text
from ..spec.events import Kind
from ..spec.parts import StatePart
from . import progress, states
from .known import Known
from .position import Position, Stride, found_again
from .restored import Resume, damaged
from .saver import Saver
from .snapshot import HostCopies, Snapshot


class Resumable(SFTTrainer):
    """What a checkpoint holds of a trainer, and how it comes back.

    Overrides the Trainer's own saving and loading where that forgets something (tokens, a metrics line half
    added up), counts in steps of a launch what another number of ranks counts differently, or stays silent.
    """

    def __init__(self, *, saver: Saver, resume: Resume | None, origin: progress.Origin, **settings: Any):
        super().__init__(**settings)
        self.saver = saver
        self.resume = resume
        self.origin = origin
        self.position = Position()
        self.stride = Stride(1, 1, 1)
        self._copies = HostCopies() if saver.asynchronous else None
        self.known = Known(resume.metrics if resume else {})
        self.add_callback(self.known)
        self.add_callback(_TakesUp(self))

    # saving

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        step = self.state.global_step
        self.saver.enter(step)
        snapshot = self._snapshot()
        if self._copies:
            snapshot = self._copies.of(snapshot)
        self.saver.save(step, snapshot.write, dict(self.known.metrics))

    def _snapshot(self) -> Snapshot:
        sharded = states.sharded(self.model, self.optimizer, self.accelerator.state.fsdp_plugin)
        return Snapshot(sharded, self._own_files() | (self._common_files() if self.args.process_index == 0 else {}))

    def _own_files(self) -> dict[str, bytes]:
        rank, window = self.args.process_index, self._window()
        name = f"rng_state_{rank}.pth" if self.args.world_size > 1 else "rng_state.pth"  # as the Trainer looks for it
        return {name: _saved(_random_state()), progress.window_name(rank): window.model_dump_json().encode()}

    def _common_files(self) -> dict[str, bytes]:
        files = {
            "scheduler.pt": _saved(self.lr_scheduler.state_dict()),
            "trainer_state.json": self._trainer_state(),
            progress.NAME: self._progress().model_dump_json(indent=1).encode(),
        }
        if is_peft_model(self.model):
            files[CONFIG] = config_text(self.model).encode()
        scaler = getattr(self.accelerator, "scaler", None)  # accelerate sets it for fp16 alone
        return files | ({"scaler.pt": _saved(scaler.state_dict())} if scaler is not None else {})

    def _trainer_state(self) -> bytes:
        """Return the Trainer's state without its history, which grows with each line and is in the events."""
        state = copy.copy(self.state)
        state.log_history = []
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            state.save_to_json(file.name)
            return Path(file.name).read_bytes()

    def _progress(self) -> progress.Progress:
        rows_in_all = len(self.train_dataset)
        return progress.Progress(
            step=self.state.global_step,
            epoch=self.position.epoch,
            rows=self.position.rows(self.stride, rows_in_all),
            rows_in_all=rows_in_all,
            seed=self._seed,
            tokens=int(self._total_train_tokens),
            rows_per_step=self.stride.rows * self.stride.accumulation,
            origin=self.origin,
        )

    def _window(self) -> progress.Window:
        metrics = {name: [float(v) for v in values] for name, values in self._metrics["train"].items() if values}
        return progress.Window(loss=float(self._tr_loss), since=self._globalstep_last_logged, metrics=metrics)

    @property
    def _seed(self) -> int:
        return int(self.args.seed if self.args.data_seed is None else self.args.data_seed)

    # where training stands in the data

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        self.position.advance(self.stride)
        return loss

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        epochs, *others = super().set_initial_training_values(args, dataloader)
        rows = args.per_device_train_batch_size * args.world_size
        self.stride = Stride(len(dataloader), rows, args.gradient_accumulation_steps)
        if self.resume:
            # Steps and passes no longer go together where another number of ranks took the first steps.
            epochs += self.resume.progress.epoch + 1 if self.resume.progress else 0
        return (epochs, *others)

    def _init_training_state(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        passes, batches = super()._init_training_state(*args, **kwargs)
        if self.resume is None:
            return passes, batches
        self.state.compute_steps(self.args, args[0])  # the recipe's intervals, not those that were saved
        if self.resume.progress and self.resume.restores(StatePart.TOKENS):
            self._total_train_tokens = self.state.num_input_tokens_seen = self.resume.progress.tokens
        self.position = self._goes_on()
        return self.position.epoch, self.position.batch

    def _goes_on(self) -> Position:
        resume = self.resume
        assert resume
        if not resume.restores(StatePart.DATA_POSITION):
            return Position()
        assert resume.progress
        resume.check_data(len(self.train_dataset), self._seed)
        position, resume.rows_again = found_again(resume.progress, self.stride)
        return position

    # loading

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        with damaged(resume_from_checkpoint):
            if is_peft_model(self.model):
                adapter.load(self.model, Path(resume_from_checkpoint) / states.MODEL)
            else:
                super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        assert self.resume
        with damaged(checkpoint):
            if self.resume.restores(StatePart.OPTIMIZER):
                plugin = self.accelerator.state.fsdp_plugin
                load_fsdp_optimizer(plugin, self.accelerator, self.optimizer, self.model, checkpoint)
            if self.resume.restores(StatePart.SCHEDULER):
                self.lr_scheduler.load_state_dict(torch.load(Path(checkpoint) / "scheduler.pt", weights_only=True))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None or self.resume is None or not self.resume.restores(StatePart.RNG):
            return
        with damaged(checkpoint):
            super()._load_rng_state(checkpoint)

    def take_up_window(self) -> None:
        """Go on with the metrics line that was half added up. The Trainer sets its sums to zero before it begins."""
        if self.resume is None or (window := self.resume.window) is None:
            return
        self._tr_loss += window.loss
        self._globalstep_last_logged = window.since
        for name, values in window.metrics.items():
            self._metrics["train"][name].extend(values)


class _TakesUp(TrainerCallback):
    def __init__(self, trainer: Resumable):
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.take_up_window()
        saver, resume = self.trainer.saver, self.trainer.resume
        if resume and saver.ranks.is_main:
            changed = resume.changed(self.trainer.origin)
            saver.journal.emit(Kind.RESUMED, state.global_step, **resume.told(), changed=list(changed))
            for text in changed.values():
                saver.journal.emit(Kind.WARNING, state.global_step, text=text)


def _random_state() -> dict[str, Any]:
    """Return the state of every generator, as the Trainer's own loading reads it."""
    state = {"python": random.getstate(), "numpy": numpy.random.get_state(), "cpu": torch.random.get_rng_state()}
    return state | ({"cuda": torch.cuda.random.get_rng_state_all()} if torch.cuda.is_available() else {})


def _saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()
