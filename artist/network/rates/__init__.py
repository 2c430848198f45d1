"""Rate functions of a run: how fast each job runs now. A row of `rate_functions.py` each."""
