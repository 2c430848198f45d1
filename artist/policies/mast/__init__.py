"""MAST: one queue for the world, plans by region, gangs in clusters (OSDI 2024)."""
