"""Divided models: their iterations, composed of single collectives of their groups."""
