"""Traces that are drawn at random, in the shape of measured ones."""
