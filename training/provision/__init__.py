"""Making an interpreter on a bare node. Runs with the standard library alone, on any Python from 3.9 on."""
