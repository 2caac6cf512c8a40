"""From the queue to training: nodes claimed, everything put there, supervisors started."""
