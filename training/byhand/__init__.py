"""Fine-tuning by hand on a bare node, without the service: the same plan, the same supervisor, the same ranks."""
