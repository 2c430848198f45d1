"""artist against recorded runs of the original simulator (docs/original-simulator.md).

**The original** is the simulator that the authors of the Dally paper published.

    replay.py        decision by decision: would our policy have done the same?
    finishes.py      job by job: does each job start and finish at the recorded times?
    aggregates.py    totals of whole runs, over many orders of machines
"""
