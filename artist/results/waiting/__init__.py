"""Why jobs waited: their stays and waits, the jobs in their way, and the story of one job."""
