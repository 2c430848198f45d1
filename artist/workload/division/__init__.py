"""How a job is divided: its axes, the schedules of its pipeline, and what traces say about both."""
