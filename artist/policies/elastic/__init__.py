"""Policies that give jobs more or fewer GPUs round by round."""
