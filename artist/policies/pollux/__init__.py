"""Pollux: goodput-aware shares of GPUs."""
