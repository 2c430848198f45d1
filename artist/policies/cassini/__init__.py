"""CASSINI (Rajasekaran et al., NSDI 2024): jobs on shared links take turns to communicate.

    circle -> unified circle of a link -> score and rotations -> time-shifts    (section 3)
    jobs and links -> affinity graph -> one time-shift per job -> candidate     (section 4)

All modules but the wrapper and its helpers are arithmetic on patterns, without an engine or
backend. Jobs and links are numbers: positions in the order in which they are given, which breaks
ties.
"""
