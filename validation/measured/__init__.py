"""Compares predicted step times with steps measured on real machines (`make measured`)."""
