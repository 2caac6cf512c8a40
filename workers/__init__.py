"""What acts on nodes: Celery tasks and the follower."""
