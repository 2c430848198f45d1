"""Are GPUs in MIG mode divided only as NVIDIA's guide allows, and is every slice held once?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_made_up import demand, pod_list

from artist.cli.fill_modes import without_machine
from artist.cluster.mig import PROFILES, best_start
from artist.errors import TraceError
from artist.pods.machine_file import MachineFile, MachineGroup
from artist.pods.machines import PodMachines
from artist.pods.placers import PLACERS
from artist.pods.placing import Placing
from artist.pods.pod_list import Demand, read_pods

# Name -> compute slices, memory slices, starts: `nvidia-smi mig -lgipp` in the guide.
A100 = {
    "1g.5gb": (1, 1, {0, 1, 2, 3, 4, 5, 6}),
    "2g.10gb": (2, 2, {0, 2, 4}),
    "3g.20gb": (3, 4, {0, 4}),
    "4g.20gb": (4, 4, {0}),
    "7g.40gb": (7, 8, {0}),
}
H100 = {
    "1g.10gb": (1, 1, {0, 1, 2, 3, 4, 5, 6}),
    "1g.20gb": (1, 2, {0, 2, 4, 6}),
    "2g.20gb": (2, 2, {0, 2, 4}),
    "3g.40gb": (3, 4, {0, 4}),
    "4g.40gb": (4, 4, {0}),
    "7g.80gb": (7, 8, {0}),
}


def maximal(profiles) -> list[set]:
    """Every set of instances that do not overlap, and to which none can be added."""
    every = [
        (name, compute, set(range(start, start + memory)))
        for name, (compute, memory, starts) in profiles.items()
        for start in starts
    ]
    overlap = [[bool(a[2] & b[2]) for b in every] for a in every]
    found = []

    def grow(chosen: list[int], first: int) -> None:
        if all(any(overlap[i][j] for j in chosen) for i in range(len(every)) if i not in chosen):
            found.append([every[i] for i in chosen])
        for i in range(first, len(every)):
            if not any(overlap[i][j] for j in chosen):
                grow([*chosen, i], i + 1)

    grow([], 0)
    return found


def test_the_lattice_of_an_a100_has_its_19_layouts() -> None:
    layouts = maximal(A100)
    # The guide's figure: the whole GPU, or one of 6 left halves beside one of 3 right halves.
    assert len(layouts) == 19 == 1 + 6 * 3
    assert all(sum(compute for _, compute, _ in one) <= 7 for one in layouts)
    # With 1g.20gb: (3 x 3 pairs, 3g or 4g) x (3 x 2 pairs or 3g), or the whole GPU.
    assert len(maximal(H100)) == 78 == 1 + 11 * 7
    assert all(sum(compute for _, compute, _ in one) <= 7 for one in maximal(H100))


@pytest.mark.parametrize(("mode", "guide"), [("a100-40gb", A100), ("h100-80gb", H100)])
def test_the_profiles_are_the_guides(mode: str, guide) -> None:
    ours = {name: (one.compute, one.memory, {*one.starts}) for name, one in PROFILES[mode].items()}
    assert ours == guide


def test_every_layout_can_be_reached_and_no_other() -> None:
    """What best_start gives, instance by instance, is always within a layout."""
    reached = set()

    def grow(held: frozenset) -> None:
        taken = set().union(*(slices for _, slices in held))
        full = True
        for name, (_, memory, starts) in A100.items():
            free = [s for s in starts if not taken & {*range(s, s + memory)}]
            if free:
                full = False
                start = best_start(name, sum(1 << one for one in taken))
                assert start in free
                grow(held | {(name, frozenset(range(start, start + memory)))})
        if full:
            reached.add(held)

    grow(frozenset())
    layouts = {frozenset((name, frozenset(s)) for name, _, s in one) for one in maximal(A100)}
    assert reached <= layouts
    # By their instances, every mix of profiles that fills a GPU.
    mixes = {tuple(sorted(name for name, _ in one)) for one in layouts}
    assert {tuple(sorted(name for name, _ in one)) for one in reached} == mixes


def test_an_instance_begins_where_most_others_still_can() -> None:
    # Starts left of all profiles: 11 after slice 6, 9 after slice 0, which 4g and 7g need.
    assert best_start("1g.5gb", 0) == 6
    assert best_start("3g.20gb", 0) == 4
    assert best_start("2g.10gb", 0) == 4
    assert best_start("2g.10gb", 0b11110000) == 0


def mig_group(mode: str = "a100-40gb", gpus: int = 2, count: int = 1) -> MachineGroup:
    return MachineGroup(count=count, cpu_milli=10**6, memory_mib=1000, gpus=gpus, mig=mode)


def instance(name: str, memory: int) -> Demand:
    return Demand(1000, 0, 1, 125 * memory, mig=name)


asked = st.sampled_from([instance(name, memory) for name, (_, memory, _) in A100.items()])


@pytest.mark.parametrize("placer", [entry.id for entry in PLACERS])
@settings(max_examples=15)
@given(
    moves=st.lists(asked | st.sampled_from([demand(500), demand(2000)]) | st.integers(0, 30),
                   min_size=1, max_size=40),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_no_slice_is_held_twice(placer: str, moves, seed: int) -> None:
    groups = (mig_group(), mig_group("h100-80gb"), MachineGroup(
        count=1, cpu_milli=10**6, memory_mib=1000, gpus=2))  # fmt: skip
    file = MachineFile(name="few", summary="", source="made up", machines=groups)
    typical = pod_list({instance("1g.5gb", 1): 2, instance("3g.20gb", 4): 1, demand(500): 1})
    draws = np.random.default_rng(seed)
    placing = Placing(file, typical, placer, draws.permutation(3), draws)
    machines = placing.machines
    every, held = np.arange(3), []
    for move in moves:
        if isinstance(move, int):
            if held:
                placing.leave(*held.pop(move % len(held)))
        else:
            room = machines.fit(move, every).any()
            wishes = machines.wishes([move])
            assert room == any(machines.fits_on(one, wishes)[0] for one in range(3))
            place = placing.place(move)
            assert (place is not None) == room
            if place is not None:
                held.append((place, move))
        used: dict[tuple[int, int], set[int]] = {}
        for place, one in held:
            if one.mig:
                _, memory, starts = A100[one.mig]
                assert place.start in starts
                here = used.setdefault((place.machine, place.gpus[0]), set())
                taken = {*range(place.start, place.start + memory)}
                assert not here & taken
                here |= taken
        for (machine, gpu), taken in used.items():
            assert machines.gpu_milli[machine, gpu] == 1000 - 125 * len(taken)
            assert machines.slices[machine, gpu] == sum(1 << one for one in taken)
            assert placing.machines.kind[machine] == 0
        assert placing.held_milli + machines.idle_milli.sum() == file.capacity_milli
    for place, one in held:
        placing.leave(place, one)
    assert not machines.slices.any()
    assert placing.held_milli == 0


def test_seven_small_instances_fill_a_gpu_though_a_slice_is_left() -> None:
    machines = PodMachines([mig_group(gpus=1)])
    small = instance("1g.5gb", 1)
    starts = [machines.claim(0, small, [0]) for _ in range(7)]
    assert sorted(starts) == [0, 1, 2, 3, 4, 5, 6]
    assert machines.gpu_milli[0, 0] == 125
    assert not machines.fit(small, np.array([0]))[0]


PODS = "cpu_milli,memory_mib,num_gpu,gpu_milli,mig\n1,1,1,,3g.20gb\n1,1,1,125,1g.5gb\n1,1,1,500,\n"


def test_pods_ask_for_profiles(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(PODS)
    pods = read_pods(path)
    assert [(one.mig, one.gpu_milli) for one in pods.demands] == [
        ("3g.20gb", 500), ("1g.5gb", 125), ("", 500),
    ]  # fmt: skip
    groups = (mig_group("h100-80gb"),)
    file = MachineFile(name="few", summary="", source="made up", machines=groups)
    assert without_machine(pods, file) == (
        "3 pods of 3 can only use 1g.5gb and 3g.20gb (mig) and GPUs in no MIG mode, which no "
        "machine of few has."
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3g.20gb", "3g.21gb", "pods.csv:2: mig is '3g.21gb', expected one of 1g.5gb, 2g.10gb"),
        ("125,1g", "500,1g", "pods.csv:3: gpu_milli is '500', expected 125 or nothing beside 1g"),
        ("1,1,1,,3g", "1,1,2,,3g", "pods.csv:2: num_gpu is '2', expected 1"),
    ],
)
def test_bad_profiles_are_named_by_their_line(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "pods.csv"
    path.write_text(PODS.replace(old, new))
    with pytest.raises(TraceError) as error:
        read_pods(path)
    assert message in str(error.value)
