"""Is the page one file, safe, small and the same every time? And the figures for papers?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from page_reading import embedded, unpack
from run_making import EVIL, make_run

from artist.errors import ConfigError
from artist.policies.table import POLICIES
from artist.report import page as page_module
from artist.report import page_facts, paper_figures
from artist.report.figure import figure_data, script_json
from artist.report.grouping import group
from artist.report.page import figures, page, places
from artist.report.page_facts import lede
from artist.report.paper_figures import check_folder, write_figures
from artist.report.reader import RecordedRun, read_runs


def test_the_page_loads_nothing(runs: Path) -> None:
    text = page(group(read_runs([runs]))).decode()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert not re.search(r"<(link|img|iframe|script[^>]*\bsrc)\b", text)
    assert "default-src 'none'" in text
    assert "url(" not in text and "@import" not in text


def test_the_page_is_the_same_every_time(runs: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from artist.report.grouping import group;"
        "from artist.report.page import page; from artist.report.reader import read_runs;"
        "sys.stdout.buffer.write(page(group(read_runs([Path(sys.argv[1])]))))"
    )
    pages = [
        subprocess.run(
            [sys.executable, "-c", code, str(runs)],
            env={"PYTHONHASHSEED": seed}, capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert pages[0] == pages[1]
    assert len(pages[0]) < 1_000_000


def test_what_varies_between_equal_runs_is_not_shown(one: Path) -> None:
    from run_making import edit_json

    before = page(group(read_runs([one])))
    edit_json(one / "summary.json", wall_s=99.0)
    edit_json(one / "manifest.json", volatile={"written_at": "another day"})
    assert page(group(read_runs([one]))) == before


def test_no_line_breaks_between_an_option_and_its_value(runs: Path) -> None:
    text = page(group(read_runs([runs]))).decode()
    body = text[text.index("<body") : text.index("<script", text.index("<body"))]
    assert body.count("--seeds 8") == body.count('<span class="whole">--seeds 8</span>') > 0


def test_names_are_never_markup(evil: Path) -> None:
    text = page(group(read_runs([evil]))).decode()
    assert EVIL not in text
    assert "<script>document" not in text
    assert text.count("<script") == 2 == text.count("</script>")
    data = embedded(text.encode())
    assert data["policies"] == [EVIL]
    assert unpack(next(iter(data["packs"].values())))["models"] == [EVIL]


def test_the_head_says_what_all_policies_do_or_none(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = group(read_runs([one]))

    def told(*policies: str) -> list[str]:
        return [policy for policy, _ in lede(replace(study, policies=policies))["policies"]]

    assert {*told("slurm", "fifo")} == {"slurm", "fifo"}
    assert told("fifo", "mine.py") == told("fifo", "las", "srtf", "sjf", "dally") == []
    dally = replace(next(row for row in POLICIES if row.id == "dally"), summary="as `a b` < c")
    monkeypatch.setattr(page_facts, "POLICIES", [dally])
    assert " dally: as <code>a b</code> &lt; c.</p>" in page(study).decode()


def test_counts_of_jobs_have_separators(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = group(read_runs([one]))
    facts = {**lede(study), "jobs": [1234, 5678]}
    monkeypatch.setattr(page_module, "lede", lambda _: facts)
    assert "1,234 to 5,678 jobs on" in " ".join(page(study).decode().split())


def test_every_setting_and_policy_has_its_timeline(runs: Path) -> None:
    data = embedded(page(group(read_runs([runs]))))
    assert set(data["packs"]) == {"0-0", "0-1", "1-0", "1-1"}
    (first, *_), jct_s = data["settings"], {}
    for place in places(group(read_runs([runs]))):
        if place.setting == 0 and place.first:
            jct_s[place.policy] = place.run.metric("jct_mean_s")
    assert first["fastest"] == sorted(jct_s, key=lambda policy: jct_s[policy])
    assert {figure["kind"] for figure in data["figures"]} == {
        "bars", "stack", "lines", "rows", "ranges", "waterfall",
    }  # fmt: skip


def test_timelines_are_left_out_when_there_is_no_room(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page(group(read_runs([runs])))
    data = embedded(whole)
    # Waits and the jobs of further replicates go before timelines.
    others = [data["jobs"][str(run)][1] for run in (1, 3, 5, 7)]
    before = [*data["waits"].values(), *others, data["work"][1]]
    cut = 500 + sum(map(len, before))
    monkeypatch.setattr(page_module, "PAGE_BYTES", len(whole) - cut)
    less = page(group(read_runs([runs])))
    assert len(less) <= len(whole) - cut
    assert list(embedded(less)["jobs"]) == ["0", "2", "4", "6"]
    assert 0 < len(embedded(less)["packs"]) < 4


def copies(folder: Path, policies: Sequence[str], count: int) -> list[RecordedRun]:
    """Runs of 500 jobs. Each copy is a setting of its own, so that no runs are pooled."""
    for policy in policies:
        make_run(folder / policy, policy=policy, racks=2, machines_per_rack=8,
                 trace="sensetime-batch-500")  # fmt: skip
    return [
        replace(run, name=f"{run.name}-{copy}", scenario={**run.scenario, "restart_s": copy})
        for run in read_runs([folder])
        for copy in range(count)
    ]


@pytest.mark.slow
def test_56_runs_of_500_jobs_stay_below_3_mb(tmp_path: Path) -> None:
    """The size of the Dally paper's study: 7 policies in 8 settings, here the busiest one."""
    policies = ("dally", "dally-manual", "dally-no-wait", "fifo", "tiresias", "gandiva", "themis")
    study = group(copies(tmp_path, policies, 8))
    assert sum(len(script_json(figure_data(figure))) for figure in figures(study)) < 1_200_000
    content = page(study)
    assert len(content) < 3_000_000
    data = embedded(content)
    assert len(data["jobs"]) == len(data["packs"]) == 56
    # The worst jobs of every run have their waits.
    assert len(data["waits"]) == 56


@pytest.mark.slow
def test_a_hundred_runs_of_500_jobs_stay_below_3_mb(tmp_path: Path) -> None:
    """Not all timelines fit. The first ones stay, in the order of the settings."""
    runs = copies(tmp_path, ("dally", "tiresias", "gandiva", "las"), 25)
    content = page(group(runs))
    assert len(content) < 3_000_000
    data = embedded(content)
    assert len(data["jobs"]) == 100
    assert 10 <= len(data["packs"]) < 100
    assert next(iter(data["packs"])) == "0-0"


def test_the_comparison_needs_no_script(runs: Path) -> None:
    text = page(group(read_runs([runs]))).decode()
    value = json.loads((runs / "dally-1-0/summary.json").read_text())["trace"]
    assert "<code>makespan_s</code>" in text
    assert value in text
    assert "over 2 paired replicates" in text


def test_text_in_script_json_cannot_end_the_script() -> None:
    text = script_json({"a": "</script><!--&"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!--&"}


@pytest.mark.slow
def test_every_figure_for_papers(one: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = group(read_runs([one]))
    names = {figure.name for figure in figures(study)}
    count = write_figures(study, tmp_path / "svg", "svg")
    files = {file.stem for file in (tmp_path / "svg").iterdir()}
    assert files > names
    assert count == len(files) == len(names) + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_formats_for_papers(
    one: Path, tmp_path: Path, format_: str, magic: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    study = group(read_runs([one]))
    some = figures(study)[:2]
    monkeypatch.setattr(paper_figures, "figures", lambda _: some)
    for folder in ("first", "again"):
        write_figures(study, tmp_path / folder, format_)
    for file in (tmp_path / "first").iterdir():
        content = file.read_bytes()
        assert content.startswith(magic)
        assert content == (tmp_path / "again" / file.name).read_bytes()


def test_figures_of_runs_with_odd_names(evil: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_figures(group(read_runs([evil])), tmp_path / "figures", "svg")
    for file in (tmp_path / "figures").iterdir():
        assert re.fullmatch(r"[a-z0-9_-]+\.svg", file.name)
        assert "<script" not in file.read_text()


@pytest.mark.slow
def test_bars_of_several_runs_for_papers(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study = group(
        read_runs([runs / f"{p}-1-{seed}" for p in ("dally", "gandiva") for seed in (0, 1)])
    )
    write_figures(study, tmp_path / "figures", "svg")
    assert (tmp_path / "figures" / "makespan.svg").exists()


def test_without_matplotlib_the_message_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"pip install 'artist-sim\[plot\]'"):
        check_folder(tmp_path / "figures")


def test_the_commands_say_what_they_wrote(artist, one: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert "1 run, 0." in artist("report", one).stderr
    assert (here / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert (
        artist("report", one, "--out", "other.html", "--title", "A <b> title", "--quiet").stderr
        == ""
    )
    assert "<h1>A &lt;b&gt; title</h1>" in (here / "other.html").read_text()
    assert artist("export", one, "--format", "perfetto", "--out", "t.json").returncode == 0
    assert json.loads((here / "t.json").read_text())["traceEvents"]
    assert sorted(path.name for path in here.iterdir()) == ["other.html", "report.html", "t.json"]


def test_a_number_has_its_unit_beside_it(one: Path) -> None:
    text = page(group(read_runs([one]))).decode()
    row = re.search(r"<code>makespan_s</code>.*?<td>([^<]*)", text, re.DOTALL)
    assert row is not None
    assert re.fullmatch(r"[\d.,]+ (d|h|min|s)", row[1].strip())
    assert re.search(r'class="unset".*?<td>not set</td>', text)
