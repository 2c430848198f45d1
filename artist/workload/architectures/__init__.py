"""The operators of each network: `convnets.py`, `transformers.py` and `sparse_inputs.py`.

They are made of the parts in `operators.py`.
"""
