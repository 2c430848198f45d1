"""What metrics and columns are called, mean and are counted in."""
