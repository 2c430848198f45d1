"""What a job sends on which links in one iteration, and how long that takes at a share of them."""
