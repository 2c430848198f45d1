"""What failures cost, from the rows of a run."""
