"""What runs on a node: fine-tuning, supervision, export. Works by hand, without the service."""
