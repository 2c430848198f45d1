"""artist against recorded runs of the original simulator (docs/reference.md)."""
