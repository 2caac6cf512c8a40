"""LoRA and QLoRA: an adapter is trained beside a base that stays as it is.

config says what the recipe asks of PEFT, wrap puts it on the model, names tells the adapter's tensors from
the base's, quantise is the 4-bit base, gradients checks that all of the adapter learns.
"""
