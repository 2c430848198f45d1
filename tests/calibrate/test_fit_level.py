"""Does a log become a fabric level whose simulation takes the times of the log?"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.calibrate.fit_fabric import calibrate_fabric, placement_of, with_level
from artist.calibrate.nccl_log import OPERATIONS, read_log
from artist.cluster.fabric import Fabric, load_fabric, with_system
from artist.errors import ConfigError, TraceError
from artist.estimates.query_from_text import on_placement
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

H100 = load_fabric("h100-quantum2-spectrum4")
BACKEND = AnalyticalBackend()


def _time_us(fabric: Fabric, placement: str, operation: str, size_bytes: int) -> float:
    collective = OPERATIONS[operation]
    phase = Phase(0.0, collective, size_bytes)
    one = Workload("m", Parallelism.MICRO, (Layer("a", Phase(), Phase(), phase),))
    return (
        BACKEND.estimate(on_placement(one, placement, fabric, {}).asked[0].query).finish_ns / 1000
    )


def test_a_ring_by_hand(write_log: Callable[..., Path]) -> None:
    """alpha = p (k h L + (k + 1) e); beta = k / n / B + 3 (n - 1) / n / M."""
    splits, messages, hops, endpoint_ns = 4, 14, 2, 10
    latency_ns, bytes_per_ns, memory = 500.0, 100.0, 3350.0
    alpha_ns = splits * (messages * hops * latency_ns + (messages + 1) * endpoint_ns)
    beta_ns = messages / 8 / bytes_per_ns + 3 * 7 / 8 / memory
    path = write_log(alpha_us=alpha_ns / 1e3, beta_us_per_byte=beta_ns / 1e3, noise=0.0)
    fit = calibrate_fabric(read_log(path), "x", H100, "machine", BACKEND)
    assert fit.level.placement == "8"
    assert fit.level.latency_ns.value == pytest.approx(latency_ns, rel=0.01)
    assert fit.level.bandwidth_gib_per_s.value == pytest.approx(
        bytes_per_ns * 1e9 / 2**30, rel=0.01
    )


def test_all_to_alls_that_go_straight_measure_a_links_bandwidth(
    write_log: Callable[..., Path],
) -> None:
    """A GPU sends (n - 1)/n of the bytes; in a ring, n/2 times as many are passed on."""
    bytes_per_ns = 300.0
    beta_ns = 7 / 8 / bytes_per_ns
    path = write_log(alpha_us=60.0, beta_us_per_byte=beta_ns / 1e3, operation="alltoall", noise=0.0)
    for base, times in ((H100, 1), (with_system(H100, {"all_to_all": "ring"}), 4)):
        fit = calibrate_fabric(read_log(path), "x", base, "machine", BACKEND)
        assert fit.level.bandwidth_gib_per_s.value == pytest.approx(
            times * bytes_per_ns * 1e9 / 2**30, rel=0.01
        )


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize(
    ("level", "hosts", "placement"),
    [("machine", (8,), "8"), ("rack", (8, 8), "8,8"), ("network", (4, 4), "4/4")],
)
def test_the_simulation_of_a_fitted_level_takes_the_logs_time(
    write_log: Callable[..., Path],
    operation: str,
    level: str,
    hosts: tuple[int, ...],
    placement: str,
) -> None:
    alpha, beta = 400.0, 1e-4
    path = write_log(
        alpha_us=alpha, beta_us_per_byte=beta, operation=operation, hosts=hosts, noise=0.0
    )
    log = read_log(path)
    fit = calibrate_fabric(log, "x", H100, level, BACKEND)
    assert fit.level.placement == placement
    for size in (log.rows[0].size_bytes, log.rows[-1].size_bytes):
        sent = size // log.ranks if log.operation == "all_gather" else size
        simulated = _time_us(fit.fabric, placement, operation, sent)
        assert simulated == pytest.approx(alpha + beta * size, rel=0.02)


def test_the_interval_covers_the_level_it_was_made_from(write_log: Callable[..., Path]) -> None:
    truth = with_level(H100, "machine", latency_ns=600.0, bandwidth_gib_per_s=200.0)
    sizes = (2**12, 2**30)
    low, high = (_time_us(truth, "8", "all_reduce", size) for size in sizes)
    beta = (high - low) / (sizes[1] - sizes[0])
    covered = 0
    for seed in range(10):
        path = write_log(alpha_us=low - beta * sizes[0], beta_us_per_byte=beta, seed=seed)
        level = calibrate_fabric(read_log(path), "x", H100, "machine", BACKEND).level
        covered += (
            level.latency_ns.low <= 600 <= level.latency_ns.high
            and level.bandwidth_gib_per_s.low <= 200 <= level.bandwidth_gib_per_s.high
        )
    assert covered >= 9


@pytest.mark.parametrize("noise", [0.0, 2e-4, 2e-3])
def test_an_interval_holds_its_value(write_log: Callable[..., Path], noise: float) -> None:
    """This holds even below the nanosecond to which the time of a message is rounded."""
    path = write_log(alpha_us=20.0, beta_us_per_byte=1.5e-5, hosts=(4,), noise=noise, smallest=20)
    level = calibrate_fabric(read_log(path), "x", H100, "machine", BACKEND).level
    for fitted in (level.latency_ns, level.bandwidth_gib_per_s):
        assert fitted.low <= fitted.value <= fitted.high


def test_sources_say_where_the_numbers_come_from(write_log: Callable[..., Path]) -> None:
    fit = calibrate_fabric(read_log(write_log()), "mine", H100, "machine", BACKEND)
    assert fit.fabric.name == "mine"
    assert fit.fabric.levels[1:] == H100.levels[1:]
    assert "run.log (sha256:" in fit.fabric.levels[0].source
    assert "99 % confidence" in fit.fabric.levels[0].source


@pytest.mark.parametrize(
    ("hosts", "level", "message"),
    [
        ((8,), "rack", r"1 host\(s\) with 8 GPUs each, but level 'rack' is measured on two"),
        ((8, 8), "machine", r"2 host\(s\) .* level 'machine' is measured on one host"),
    ],
)
def test_a_log_that_does_not_span_the_level_is_refused(
    write_log: Callable[..., Path], hosts: tuple[int, ...], level: str, message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        placement_of(read_log(write_log(hosts=hosts)), H100, level)


def test_sockets_are_measured_within_one(write_log: Callable[..., Path]) -> None:
    dally = load_fabric("dally2025")
    assert placement_of(read_log(write_log(hosts=(4,))), dally, "socket") == "4"
    assert placement_of(read_log(write_log(hosts=(8,))), dally, "machine") == "8"
    with pytest.raises(TraceError, match="8 GPUs, but a socket has 4"):
        placement_of(read_log(write_log(hosts=(8,))), dally, "socket")


def test_faster_than_the_inner_levels_is_refused(write_log: Callable[..., Path]) -> None:
    log = read_log(write_log(hosts=(8, 8), beta_us_per_byte=1e-7))
    with pytest.raises(TraceError, match="less than ASTRA-sim's reductions"):
        calibrate_fabric(log, "x", H100, "rack", BACKEND)


def test_an_unknown_level_is_refused(write_log: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match=r"--level 'pod': .* machine, rack, network"):
        calibrate_fabric(read_log(write_log()), "x", H100, "pod", BACKEND)


def test_facts_are_json(write_log: Callable[..., Path]) -> None:
    fit = calibrate_fabric(read_log(write_log()), "x", H100, "machine", BACKEND)
    assert json.loads(json.dumps(fit.facts))["operation"] == "all_reduce"
    assert Collective.ALL_REDUCE is OPERATIONS["all_reduce"]


def test_a_log_that_the_inner_levels_contradict_says_so(write_log: Callable[..., Path]) -> None:
    """Two machines whose switches alone take longer than the small messages of the log."""
    log = read_log(write_log(hosts=(8, 8), alpha_us=45.0, beta_us_per_byte=5e-5))
    level = calibrate_fabric(log, "x", H100, "rack", BACKEND).level
    assert level.latency_ns.value == 0
    assert level.smallest_error > 0.1


def test_a_plot_is_drawn(write_log: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (artist-sim[plot])")
    from artist.report.command_plots import plot_fabric

    fit = calibrate_fabric(read_log(write_log()), "x", H100, "machine", BACKEND)
    for name in ("fit.png", "fit.svg"):
        plot_fabric(fit, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(ConfigError, match="cannot be written"):
        plot_fabric(fit, tmp_path / "no" / "fit.png")
