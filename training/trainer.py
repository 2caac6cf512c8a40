"""TRL's SFTTrainer, told what the recipe says and how this house saves."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PrinterCallback, Trainer
from trl import SFTConfig, SFTTrainer

from .journal import Journal
from .saver import Saver
from .spec.events import Kind
from .spec.job import TrainJob
from .watch.brake import Brake


def arguments(job: TrainJob, *, accelerator: bool) -> SFTConfig:
    """Return the Trainer's arguments. Making them brings the process group up."""
    recipe = job.recipe
    how = recipe.optimisation
    return SFTConfig(
        output_dir=job.checkpoints,
        use_cpu=not accelerator,
        bf16=recipe.precision == "bf16",
        optim=how.optimizer,
        learning_rate=how.learning_rate,
        lr_scheduler_type=how.schedule,
        warmup_steps=how.warmup_ratio,
        weight_decay=how.weight_decay,
        max_grad_norm=how.max_grad_norm,
        per_device_train_batch_size=how.per_device_batch,
        per_device_eval_batch_size=how.per_device_batch,
        gradient_accumulation_steps=how.accumulation,
        max_steps=how.max_steps,
        seed=how.seed,
        data_seed=how.seed,
        max_length=recipe.data.max_length,
        packing=recipe.data.packing,
        logging_steps=how.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        eval_strategy="steps" if how.evaluate_every and job.test else "no",
        eval_steps=how.evaluate_every or None,
        save_strategy="steps",
        save_steps=recipe.checkpoints.every_steps,
        save_total_limit=None,  # the Trainer would delete the last complete one for a torn one
        activation_checkpointing=False,  # FSDP's own does it: accelerate.yaml is the one place
        dataloader_pin_memory=accelerator,
        report_to="none",
        disable_tqdm=True,
    )


class Sft(SFTTrainer):
    """SFTTrainer that saves through a Saver and shows each loss to a Brake."""

    def __init__(self, *, saver: Saver, brake: Brake, story: Journal | None, **settings: Any):
        super().__init__(**settings)
        self.saver = saver
        self.brake = brake
        self.story = story
        if story is None:
            self.remove_callback(PrinterCallback)  # else the log of every node repeats the first one's figures

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **kwargs)
        self.brake.saw_loss(bool(torch.isfinite(loss)))
        return loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        step = self.state.global_step
        self._phase("saving")
        # Not SFTTrainer's own, which would add a model card for a hub.
        self.saver.save(step, lambda: Trainer._save_checkpoint(self, model, trial))
        self._phase("training")

    def _phase(self, name: str) -> None:
        if self.story:
            self.story.emit(Kind.PHASE, self.state.global_step, name=name)
