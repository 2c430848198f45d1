"""Paired differences between runs: intervals, verdicts that hold together, and their words."""
