"""CASSINI (Rajasekaran et al., NSDI 2024): jobs on shared links take turns to communicate.

    circle -> unified circle of a link -> score and rotations -> time-shifts    (section 3)
    jobs and links -> affinity graph -> one time-shift per job -> candidate     (section 4)

Everything here is arithmetic on patterns. Nothing asks an engine, a cluster or a backend. Jobs and
links are numbers: positions in the order in which they are given. This order alone breaks ties.
"""
