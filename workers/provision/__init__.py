"""An interpreter is made on a node: its files put there, the making started once, looked after, and tried."""
