"""Models of contention: how long iterations take for jobs that send on the same links."""
