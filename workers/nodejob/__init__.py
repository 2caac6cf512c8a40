"""Jobs of one node, an export for one: chosen, put there, started once, looked after, ended with a reason."""
