"""Models of contention: what an iteration takes for jobs that send on the same links."""
