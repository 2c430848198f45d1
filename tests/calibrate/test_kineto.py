"""Are hand-made traces of PyTorch's profiler read right, and bad ones refused?"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.calibrate.kineto import length, minus, read_kineto, union
from artist.errors import TraceError


def _event(
    name: str, category: str, start: float, duration: float, tid: int = 1, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": 0,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": {key.replace("_", " "): value for key, value in args.items()},
    }


def _step(start: float) -> list[dict[str, Any]]:
    """Forward 10 + 20 us, backward 40 us, all-reduce of 60 us, half of it hidden."""
    at = start
    return [
        _event("ProfilerStep#1", "user_annotation", at, 200),
        _event("layer:a", "user_annotation", at + 1, 5),
        _event("aten::linear", "cpu_op", at + 2, 3, Sequence_number=7),
        _event("cudaLaunchKernel", "cuda_runtime", at + 3, 1, correlation=at + 1),
        _event("layer:b", "user_annotation", at + 7, 5),
        _event("cudaLaunchKernel", "cuda_runtime", at + 8, 1, correlation=at + 2),
        _event("autograd: LinearBackward", "cpu_op", at + 20, 9, tid=2, Sequence_number=7),
        _event("cudaLaunchKernel", "cuda_runtime", at + 21, 1, tid=2, correlation=at + 3),
        _event("gemm", "kernel", at + 10, 10, tid=70, correlation=at + 1),
        _event("gemm", "kernel", at + 20, 20, tid=70, correlation=at + 2),
        _event("gemm_backward", "kernel", at + 50, 40, tid=70, correlation=at + 3),
        _event("ncclDevKernel_AllReduce_Sum_f32_RING", "kernel", at + 60, 60, tid=71),
        _event("Memcpy HtoD", "gpu_memcpy", at + 150, 40, tid=70),
    ]


def _write(folder: Path, events: list[dict[str, Any]]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_a_step_by_hand(tmp_path: Path) -> None:
    times = read_kineto(_write(tmp_path, _step(1000) + _step(2000)))
    assert times.steps == 2
    assert (times.compute_us, times.comm_us, times.exposed_us) == (70, 60, 30)
    assert times.share == pytest.approx(3 / 7)
    layers = {layer.name: (layer.forward_us, layer.backward_us) for layer in times.layers}
    assert layers == {"a": (10, 40), "b": (20, 0)}


def test_a_compressed_trace(tmp_path: Path) -> None:
    plain = _write(tmp_path, _step(0))
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_kineto(packed).compute_us == read_kineto(plain).compute_us


def test_a_cpu_run(tmp_path: Path) -> None:
    events = [
        _event("ProfilerStep#1", "user_annotation", 0, 100),
        _event("aten::mm", "cpu_op", 10, 30),
        _event("c10d::allreduce_", "cpu_op", 20, 60),
        _event("gloo:all_reduce", "user_annotation", 20, 60, tid=9),
    ]
    times = read_kineto(_write(tmp_path, events))
    assert (times.compute_us, times.comm_us, times.exposed_us) == (30, 60, 40)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"traceEvents": [\n{"ph": "X"', r"trace.json:2: not JSON .*cut off"),
        ('{"spans": []}', r"trace.json:1: no 'traceEvents'"),
        ("[]", r"trace.json:1: no 'traceEvents'"),
        ('{"traceEvents": []}', r"no 'ProfilerStep#N' ranges"),
        ('{"traceEvents": [{"ph": "X", "name": "a"}]}', r"event 1 has no time"),
        ('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": -2}]}', r"event 1 \(a\) lasts"),
    ],
)
def test_bad_traces_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_kineto(path)


def test_a_trace_without_work_is_refused(tmp_path: Path) -> None:
    step = _event("ProfilerStep#1", "user_annotation", 0, 100)
    with pytest.raises(TraceError, match="no kernels and no operators"):
        read_kineto(_write(tmp_path, [step]))
    kernel = _event("gemm", "kernel", 500, 10)
    with pytest.raises(TraceError, match="a step without computation"):
        read_kineto(_write(tmp_path, [step, kernel]))


_TIMES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 10)).map(lambda x: (x[0], x[0] + x[1])), max_size=8
)


@given(_TIMES, _TIMES)
def test_spans_are_sets_of_time(these: list[tuple[int, int]], those: list[tuple[int, int]]) -> None:
    def points(spans: list[tuple[int, int]]) -> set[int]:
        return {time for start, end in spans for time in range(start, end)}

    a, b = union(these), union(those)
    assert length(a) == len(points(these))
    assert length(minus(a, b)) == len(points(these) - points(those))
