"""The operators of each network: `convnets.py`, `generators.py`, `transformers.py`, `recurrent.py`
and `sparse_inputs.py`.

They are made of the parts in `operators.py`.
"""
