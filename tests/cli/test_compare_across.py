"""`artist compare --across` as a user runs it."""

from __future__ import annotations

import json


def test_the_command_gives_each_world_what_a_comparison_there_gives(artist, tmp_path) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "2", "--policies", "fifo,las,dally")
    asked += ("--permutations", "5")
    several = artist(*asked, "--across", "t4,dally2025", "--format", "json", code=0)
    printed = json.loads(several.stdout)
    assert list(printed["worlds"]) == ["t4", "dally2025"]
    alone = artist(*asked, "--fabric", "t4", "--format", "json")
    assert printed["worlds"]["t4"] == json.loads(alone.stdout)
    table = artist(*asked, "--across", "t4,dally2025", "--values", "worlds.csv").stdout
    assert table.startswith("# t4: fabric t4, measured")
    assert "\nmetric\tpolicy\tt4\tdally2025\twhere\n" in table
    assert (tmp_path / "worlds.csv").read_text().startswith("world,metric,unit,policy")


def test_assumptions_are_changed_one_at_a_time_and_ranked(artist) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "2", "--policies", "fifo,las")
    asked += ("--fabric", "dally2025")
    printed = artist(*asked, "--assumptions", "--metrics", "makespan_s", code=0)
    assert printed.stderr.startswith(
        "128 runs: 16 in each of 8 worlds: as given; collectives=bucketed, "
    )
    assert "\nmetric\tpolicy\tassumption\tas given\tchanged\tmoved by\tverdict\n" in printed.stdout
    assert "makespan_s of las" in printed.stdout.splitlines()[1]
    found = json.loads(artist(*asked, "--assumptions", "--format", "json").stdout)
    shifts = [one["shift"] for one in found["effects"] if one["metric"] == "makespan_s"]
    assert shifts == sorted(shifts, reverse=True)
    both = artist(*asked, "--assumptions", "--across", "t4,a100", code=2)
    assert "--across and --assumptions: one question at a time" in both.stderr
