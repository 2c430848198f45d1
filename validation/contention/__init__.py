"""Compares models of contention with two simulators of networks (`make contention`)."""
