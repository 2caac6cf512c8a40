"""Names that people bring along from the trainer, accelerate, peft or bitsandbytes: what they are called here, or why
they aren't there. A recipe refuses them like every unknown field, with that answer.
"""

from __future__ import annotations

# name: our field
CALLED = {
    "activation_checkpointing": "fsdp.activation_checkpointing",
    "adam_beta1": "optimisation.betas",
    "adam_beta2": "optimisation.betas",
    "adam_epsilon": "optimisation.epsilon",
    "assistant_only_loss": "data.train_on: assistant",
    "attn_implementation": "model.attention",
    "completion_only_loss": "data.train_on: completion",
    "dataset_text_field": "data.text_field",
    "distributed_type": "fsdp",
    "eval_steps": "optimisation.evaluate_every",
    "evaluation_strategy": "optimisation.evaluate_every",
    "fsdp_activation_checkpointing": "fsdp.activation_checkpointing",
    "fsdp_auto_wrap_policy": "fsdp.wrap_policy",
    "fsdp_backward_prefetch": "fsdp.backward_prefetch",
    "fsdp_config": "fsdp",
    "fsdp_cpu_ram_efficient_loading": "fsdp.ram_efficient_loading",
    "fsdp_forward_prefetch": "fsdp.forward_prefetch",
    "fsdp_min_num_params": "fsdp.wrap_parameters",
    "fsdp_offload_params": "fsdp.cpu_offload",
    "fsdp_reshard_after_forward": "fsdp.sharding",
    "fsdp_sharding_strategy": "fsdp.sharding",
    "fsdp_sync_module_states": "fsdp.sync_module_states",
    "fsdp_transformer_layer_cls_to_wrap": "fsdp.wrap_classes",
    "fsdp_version": "fsdp.version",
    "gradient_accumulation_steps": "optimisation.accumulation",
    "logging_steps": "optimisation.log_every",
    "lora_alpha": "method.alpha",
    "lora_dropout": "method.dropout",
    "lora_r": "method.rank",
    "lr": "optimisation.learning_rate",
    "lr_scheduler_type": "optimisation.schedule",
    "max_seq_length": "data.max_length",
    "metric_for_best_model": "checkpoints.best_metric",
    "model_name_or_path": "model.name",
    "num_train_epochs": "optimisation.epochs",
    "optim": "optimisation.optimizer",
    "per_device_train_batch_size": "optimisation.per_device_batch",
    "report_to": "trackers.names",
    "save_steps": "checkpoints.every_steps",
    "save_total_limit": "checkpoints.keep",
    "use_rslora": "method.rank_stabilised",
}
FOUR_BIT = (
    "a base in 4 bits can't be trained itself, only an adapter beside it",
    "Set method.kind to qlora; method.quantisation says which 4 bits.",
)
RECOMPUTE = (
    "under FSDP the trainer's own recomputation gathers each layer's weights a second time",
    "Set fsdp.activation_checkpointing, the one place for it.",
)
PRECISION = ("the precision is one field, so that two never disagree", "Set precision to bf16, fp16 or fp32.")
LAUNCHER = ("a recipe doesn't say where it runs", "Nodes and ranks come with the launch: the cluster, or --nodes.")
# name: (reason, way out)
NOT_HERE = {
    "save_only_model": (
        "a sharded checkpoint without its optimizer can't be gone on from, and SHARDED_STATE_DICT refuses it",
        "Leave it out; export.at_end gives the model alone.",
    ),
    "load_best_model_at_end": (
        "SHARDED_STATE_DICT can't be loaded back into the model at the end",
        "Set checkpoints.keep_best, which keeps the best checkpoints; export the one you choose.",
    ),
    "greater_is_better": (
        "the best checkpoint is the one of the lowest loss",
        "Leave it out; checkpoints.best_metric says which loss.",
    ),
    "save_strategy": (
        "a checkpoint comes every so many steps or minutes, and at the end",
        "Set checkpoints.every_steps, every_minutes and at_end; keep_best keeps the best of them.",
    ),
    "gradient_checkpointing": RECOMPUTE,
    "gradient_checkpointing_kwargs": RECOMPUTE,
    "load_in_4bit": FOUR_BIT,
    "bnb_4bit_quant_type": FOUR_BIT,
    "bnb_4bit_compute_dtype": FOUR_BIT,
    "bnb_4bit_quant_storage": FOUR_BIT,
    "bnb_4bit_use_double_quant": FOUR_BIT,
    "quantization_config": FOUR_BIT,
    "load_in_8bit": (
        "a base in 8 bits can't be sharded by FSDP",
        "Set method.kind to qlora for 4 bits, or lora for the base as it is.",
    ),
    "bf16": PRECISION,
    "fp16": PRECISION,
    "tf32": PRECISION,
    "torch_dtype": (
        "the file's number format doesn't matter: weights are converted while they are read",
        "Set precision and master_weights.",
    ),
    "mixed_precision": PRECISION,
    "device_map": ("FSDP places the weights, a shard on each rank", "Leave it out."),
    "deepspeed": ("training shards by FSDP, and never by two libraries at once", "Set the section fsdp."),
    "fsdp_state_dict_type": (
        "checkpoints are always SHARDED_STATE_DICT, and an export is always the full one",
        "Leave it out; see export.",
    ),
    "fsdp_use_orig_params": ("it is always on: adapters and the optimizer's groups need it", "Leave it out."),
    "output_dir": ("folders are named by the run and its attempt", "Leave it out; by hand, give --out."),
    "resume_from_checkpoint": (
        "an attempt goes on from a checkpoint, not a recipe",
        "Resume on the run's page, or by hand with --resume latest.",
    ),
    "push_to_hub": ("nothing leaves the nodes by itself", "Export the model and upload that."),
    "hub_token": ("a recipe holds no secrets", "Leave it out; a token goes into the environment of the nodes."),
    "num_processes": LAUNCHER,
    "num_machines": LAUNCHER,
    "machine_rank": LAUNCHER,
    "main_process_ip": LAUNCHER,
    "main_process_port": LAUNCHER,
}


def answer(name: str) -> tuple[str, str] | None:
    """Return (reason, way out) for a well-known name that isn't ours; None where it is not well known."""
    if name in NOT_HERE:
        return NOT_HERE[name]
    return ("it is called otherwise here", f"Set {CALLED[name]}.") if name in CALLED else None
