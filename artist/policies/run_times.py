"""Which policies know how long a job will run: facts that a trace has and a real cluster lacks.

Such a policy reads the iterations that a job has in all, or those that are left. It is an oracle:
its results say what perfect knowledge of run times would give. The rows of the table of policies
have the fact. A class in a file of the user states it as `knows_run_times = True`.
"""

from __future__ import annotations

from artist.policies.own_file import entry_in_file, is_in_a_file
from artist.policies.table import POLICIES

KNOWS = "run times of all jobs"
"""What such a policy knows, in words."""


def knows_run_times(name: str) -> bool:
    """Whether a policy reads how long jobs will run: `NAME`, `FILE.py:CLASS` or `WRAPPER(NAME)`.

    A wrapper knows what the policy inside knows. Options are not looked at: `fifo` with
    `policy.order=length` counts as `fifo`.

    Raises:
        ConfigError: unknown name, or a file that holds no such policy.
    """
    outer, bracket, inner = name.partition("(")
    outer = outer.strip()
    entry = entry_in_file(outer) if is_in_a_file(outer) else POLICIES[outer]
    if entry.knows_run_times:
        return True
    return bool(bracket) and knows_run_times(inner.removesuffix(")"))
