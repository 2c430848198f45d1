"""Where the tables of jobs are, how they get elsewhere, and what it costs to be elsewhere."""
