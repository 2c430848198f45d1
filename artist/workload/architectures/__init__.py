"""The operators of each network, from convolutional networks to today's decoders.

They are made of the parts in `operators.py`.
"""
