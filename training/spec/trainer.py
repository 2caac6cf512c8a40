"""PURE: recipe -> the trainer's arguments, as the names and values of TRL's SFTConfig.

Golden files hold them beside accelerate.yaml; `training.arguments` makes the SFTConfig of them. What depends on the
node alone, such as which chip there is, comes in as an argument.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .folder import attempt_name
from .recipe import Recipe


def trainer_arguments(recipe: Recipe, *, checkpoints: str, evaluates: bool, accelerator: bool) -> dict[str, object]:
    """Return SFTConfig's arguments.

    `checkpoints`: folder that the Trainer saves into. `evaluates`: there are rows to evaluate on.
    `accelerator`: ranks train on GPUs.
    """
    return {
        "output_dir": checkpoints,
        "use_cpu": not accelerator,
        **_optimiser(recipe),
        **_batches(recipe),
        **_rows(recipe),
        **_reports(recipe, checkpoints, evaluates),
        **_saves(recipe),
        "activation_checkpointing": False,  # FSDP's own does it: accelerate.yaml is the one place
        "dataloader_pin_memory": accelerator,
    }


def _optimiser(recipe: Recipe) -> dict[str, object]:
    how = recipe.optimisation
    return {
        "bf16": recipe.precision == "bf16" and recipe.master_weights == "fp32",  # else the model itself is bf16
        "fp16": recipe.precision == "fp16",
        "optim": how.optimizer,
        "learning_rate": how.learning_rate,
        "lr_scheduler_type": how.schedule,
        "warmup_steps": how.warmup_steps or how.warmup_ratio,  # below 1 it is a share of all steps
        "weight_decay": how.weight_decay,
        "adam_beta1": how.betas[0],
        "adam_beta2": how.betas[1],
        "adam_epsilon": how.epsilon,
        "max_grad_norm": how.max_grad_norm,
    }


def _batches(recipe: Recipe) -> dict[str, object]:
    how = recipe.optimisation
    return {
        "per_device_train_batch_size": how.per_device_batch,
        "per_device_eval_batch_size": how.per_device_batch,
        "gradient_accumulation_steps": how.accumulation,
        # Else every rank holds the gradient of the whole model between forward passes: 280 GB in fp32 for 70B.
        "accelerator_config": {"gradient_accumulation_kwargs": {"sync_each_batch": True}},
        "max_steps": -1 if how.epochs else how.max_steps,
        **({"num_train_epochs": how.epochs} if how.epochs else {}),
        "seed": how.seed,
        "data_seed": how.seed,
    }


def _rows(recipe: Recipe) -> dict[str, object]:
    """Rows come tokenised, cut and packed: the trainer must not do it again, only collate them as they are."""
    return {
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "max_length": recipe.data.max_length,
        "packing": recipe.data.packing,
        "packing_strategy": recipe.data.packing_strategy,
    }


def _reports(recipe: Recipe, checkpoints: str, evaluates: bool) -> dict[str, object]:
    how = recipe.optimisation
    return {
        "logging_steps": how.log_every,
        "logging_first_step": True,
        "logging_nan_inf_filter": False,
        "eval_strategy": "steps" if how.evaluate_every and evaluates else "no",
        "eval_steps": how.evaluate_every or None,
        "report_to": list(recipe.trackers.names),
        "project": recipe.trackers.project,
        "run_name": attempt_name(PurePosixPath(checkpoints)),
        "disable_tqdm": True,
    }


def _saves(recipe: Recipe) -> dict[str, object]:
    return {
        "save_strategy": "steps",
        "save_steps": recipe.checkpoints.every_steps,
        "save_total_limit": None,  # the Trainer would delete the last complete one for a torn one
    }
