"""Deliveries of exports: by a job of the node that holds them, or carried from node to node by the worker."""
