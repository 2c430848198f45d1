"""What Slurm says of a cluster: its texts, and the facts in a cluster file that come from them."""
