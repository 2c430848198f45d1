"""What a run tells of its data: who used which tables where, and the plan that placed them."""
