"""From one complete sharded checkpoint to a standard model folder that is proven to load.

    python -m training export <recipe.json>     (spec.job.ExportJob)

cli reads as the whole story: manifest (is every shard what was written?), blueprint (what the base
model's config says the tensors are), layout (where each goes), stream (move them, a piece at a time),
companions (config, tokenizer), proof (load it in a fresh process), then the folder gets its name.
"""
