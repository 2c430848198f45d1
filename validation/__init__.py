"""Comparisons of artist with other simulators; they need recordings that do not ship."""
