"""When each NPU of a graph finishes, exact to the nanosecond.

One NPU of each class is played where that is exact (`representatives.py`), else all of them,
message by message (`all_npus.py`).
"""

from __future__ import annotations

from artist.astra.algorithms.timing import AmbiguousOrderError
from artist.astra.model.all_npus import AllNpus
from artist.astra.model.graph_refusals import refuse_deadlock
from artist.astra.model.prepared_graph import prepare_graph
from artist.astra.model.representatives import DifferentNpusError, play_classes
from artist.estimates.query import Dimension, SystemSettings
from artist.workload.graph import JobGraph


def finish_times(
    graph: JobGraph, dimensions: tuple[Dimension, ...], system: SystemSettings
) -> list[int]:
    """When each NPU finishes, in ns.

    Raises:
        BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
    """
    prepared = prepare_graph(graph, dimensions, system)
    try:
        ended = [x for x in play_classes(prepared) if x is not None]
    except (AmbiguousOrderError, DifferentNpusError):
        ended = []
    if len(ended) == len(prepared.programs):
        return ended
    played = AllNpus(prepared.work, prepared.programs)
    ended = [x for x in played.run() if x is not None]
    if len(ended) < len(prepared.programs):
        refuse_deadlock(graph, played)
    return ended
