"""Small real models and data, made offline: for demonstrations, tests and a first run on a new node."""
