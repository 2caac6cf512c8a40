"""From a row to tokens and which of them are trained: one answer for the ranks and for the page that shows rows.

Nothing here imports a tokenizer: the caller brings one of transformers'.
"""
