"""Comparisons of artist with other simulators. They need recordings that do not ship."""
