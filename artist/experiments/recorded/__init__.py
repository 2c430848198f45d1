"""A recorded Slurm: replayed, changed, and continued into the future."""
