"""Where the tables of jobs are, how they are copied, and what reading from other regions costs."""
