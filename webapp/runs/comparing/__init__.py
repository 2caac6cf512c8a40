"""Some runs beside each other: their curves, where they ended, and what differs between them."""
