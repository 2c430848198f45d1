"""Contract checks for policies, public so that anybody's policy can take them.

    from artist.testing import check_policy
    check_policy(lambda: MyPolicy(MyPolicy.Options()))

A policy that asks for random numbers gets them here too: `draws=Draws()` (`artist.rng`).

A policy that passes is valid, deterministic and picklable. It does not change the view, brings
every finite trace to its end, does not read names, decides lawfully when speeds change at every
event, and decides by the lengths of jobs only if it says `knows_run_times = True`.
"""

from artist.testing.level_rates import LevelRates
from artist.testing.policy_checks import CLAUSES, check_policy
from artist.testing.run_time_check import check_run_times, decides_by_run_times
from artist.testing.situation import Situation, situations

__all__ = [
    "CLAUSES",
    "LevelRates",
    "Situation",
    "check_policy",
    "check_run_times",
    "decides_by_run_times",
    "situations",
]
