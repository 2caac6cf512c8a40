"""Who gets which GPUs, and why the others wait: one rule (plan.py) that workers act by and pages tell."""
