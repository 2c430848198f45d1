"""Sia: goodput-aware configurations of GPUs of several kinds."""
