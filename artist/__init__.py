"""Simulate GPU clusters that train many deep-learning jobs at once.

Importing this package is cheap on purpose: heavy libraries are imported where
they are used.
"""

__version__ = "0.1.0"
