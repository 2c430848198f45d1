"""What a mean completion time consists of.

So a difference of two mean completion times is the sum of four differences.
"""

PARTS = {
    "waiting": "queue_delay_mean_s",
    "communication": "comm_kept_mean_s",
    "preemption and restarts": "preemption_time_mean_s",
    "computing": "compute_kept_mean_s",
}
"""Part -> metric; the sum of these four metrics is `jct_mean_s`."""
