"""What a job sends on which links in one iteration, and how long it takes at a bandwidth share."""
