"""Backfilling with reservations, `easy` and `conservative`, as clean baselines."""
