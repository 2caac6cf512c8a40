"""Loading that keeps its promise: no rank holds more of the model than its own shard and a piece in passing."""
