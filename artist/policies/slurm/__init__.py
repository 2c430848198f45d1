"""Slurm's slurmctld 22.05: priorities, its two schedulers, and where jobs get GPUs.

| module | |
| --- | --- |
| `policy` | when the main scheduler and backfill look at the queue, and what starts |
| `settings` | `slurm.conf`, from the section `slurm` of a cluster file |
| `request` | what a job asks for |
| `priority`, `fair_share` | which job comes first |
| `machines`, `selection` | which machines are free, and which of them a job gets |
| `running` | the jobs that hold GPUs, kept from pass to pass |
| `preemption`, `reservations`, `limits` | what else keeps jobs waiting, or lets them start |
| `backfill` | when a job could start, and what is reserved for it |

Source: slurm.conf(5), sched_config, priority_multifactor and fair_tree of Slurm 22.05. Times are
whole seconds here, as in slurmctld.
"""
