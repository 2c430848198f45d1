"""The base of all traces: tables of cells, artist's own formats, the `Trace` and its writers."""
