"""Do settings in the name of a model change what they should, and nothing else?"""

import pytest

from artist.api import latency
from artist.errors import ConfigError
from artist.registry import UnknownNameError
from artist.workload.division.staged import Sharded
from artist.workload.layers import Collective, Parallelism
from artist.workload.models import canonical, operators, parameters, settings, summary, workload


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("resnet50@batch=64", "resnet50@batch=64"),
        ("ResNet-50@Batch=64", None),
        ("ResNet-50@batch = 064", "resnet50@batch=64"),
        ("resnet50@batch=32", "resnet50"),
        ("resnet50@gpu=H100,batch=64", "resnet50@batch=64,gpu=h100"),
        ("GPT2-XL@sequence=512,batch=4", "gpt2-xl@batch=4,sequence=512"),
        ("BERT@sequence=128", "bert-large@sequence=128"),
        ("llama@parallel=data", "llama2-7b@parallel=data"),
        ("gpt3@tensor=4", "gpt3-175b@tensor=4"),
    ],
)
def test_one_workload_has_one_name(spelling: str, name: str | None) -> None:
    if name is None:
        with pytest.raises(UnknownNameError, match=r"did you mean 'batch'\?"):
            canonical(spelling)
        return
    assert canonical(spelling) == canonical(name) == name
    assert workload(spelling) is workload(name)
    assert workload(name).name == summary(name).id == name


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resnet51@batch=8", r"unknown model 'resnet51': did you mean"),
        ("resnet50@=8", r"'=8' is not SETTING=VALUE"),
        ("resnet50@", r"'' is not SETTING=VALUE"),
        ("resnet50@batch", r"^model 'resnet50@batch': 'batch' is not SETTING=VALUE, such"),
        ("resnet50@batches=8", r"unknown setting 'batches'; did you mean 'batch'"),
        ("resnet50@batch=0", r"batch is '0', expected a whole number from 1"),
        ("resnet50@batch=-8", r"batch is '-8'"),
        ("resnet50@batch=1e3", r"batch is '1e3'"),
        ("resnet50@batch=8,batch=9", r"batch is given twice"),
        ("resnet50@gpu=k80", r"gpu is 'k80', expected one of t4, v100, a100, h100, h200, b200"),
        ("resnet50@sequence=8", r"this model has no sequence"),
        ("gpt2@experts=8", r"this model has no experts"),
        ("gpt2@sequence=true", r"from 1 to \d+; or sequence_parallel=true\?"),
        ("gpt2@sequence=2048", r"sequence is 2048, but the model has 1024 positions"),
        ("resnet50@tensor=2", r"only transformers divide"),
        ("gpt2@tensor=2,parallel=fsdp", r"fsdp cannot be combined with tensor"),
        ("gpt2@sharded=no,parallel=fsdp", r"fsdp cannot be combined with .*; give sharded=zero3"),
        ("mixtral-8x7b@parallel=fsdp,expert=8", r"fsdp cannot be combined with .* or expert"),
        ("gpt2@prefetch=2", r"prefetch applies to weights that replicas share; give sharded"),
        ("llama3-8b@prefetch=2,tensor=8", r"prefetch applies to weights"),
        ("gpt2-moe@tensor=2", r"experts cannot be combined with tensor"),
        ("mixtral-8x7b@expert=1,dispatch=machine", r"dispatch and overlap apply to experts"),
        ("mixtral-8x7b@pipeline=2,overlap=experts", r"dispatch and overlap apply to experts"),
        (
            "llama3-8b@overlap=experts",
            r"dispatch and overlap apply to experts on several GPUs; give",
        ),
        ("mixtral-8x7b@dispatch=gpu", r"dispatch is 'gpu', expected one of expert, machine"),
        ("gpt2@stages=2,microbatches=3", r"a batch of 8 does not divide into 3 microbatches"),
    ],
)
def test_wrong_specs_are_refused_in_one_sentence(spec: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        canonical(spec)


def test_blocks_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ConfigError, match="12 blocks do not divide into 5 stages"):
        workload("gpt2@stages=5")


def test_batch_scales_compute_and_nothing_else() -> None:
    one, two = workload("resnet50"), workload("resnet50@batch=64")
    for a, b in zip(one.layers, two.layers, strict=True):
        assert b.forward.compute_us == pytest.approx(2 * a.forward.compute_us)
        assert b.weight_grad.comm_bytes == a.weight_grad.comm_bytes


def test_sequence_scales_attention_quadratically() -> None:
    def macs(sequence: int) -> int:
        return sum(x.macs for x in operators(f"gpt2@sequence={sequence}"))

    # 12 blocks of 2 s^2 h beyond what is linear.
    assert macs(1024) - 2 * macs(512) == 12 * 2 * 768 * (1024**2 - 2 * 512**2)
    assert parameters("gpt2@sequence=512") == parameters("gpt2")


def test_precision_halves_what_is_sent() -> None:
    full, half = workload("gpt2"), workload("gpt2@precision=bf16")
    for a, b in zip(full.layers, half.layers, strict=True):
        assert 2 * b.weight_grad.comm_bytes == a.weight_grad.comm_bytes


_SHARES = {  # what replicas of a job of 16 GPUs share
    "llama3-8b@data=16": Sharded.ZERO3,
    "llama3-8b@order=data": Sharded.ZERO3,
    "llama3-8b@recompute=full": Sharded.ZERO3,
    "llama3-8b@context=2": Sharded.ZERO3,
    "llama3-8b@prefetch=2": Sharded.ZERO3,
    "gpt2@parallel=fsdp,data=16": Sharded.ZERO3,
    "llama3-8b@sharded=zero1": Sharded.ZERO1,
    "llama3-8b@sharded=no": Sharded.NO,
    "llama3-8b@parallel=data,data=16": Sharded.NO,
    "llama3-8b@tensor=2": Sharded.NO,
    "llama3-8b@pipeline=2": Sharded.NO,
    "gpt2@data=16": Sharded.NO,
}


@pytest.mark.parametrize(("spec", "shared"), _SHARES.items())
def test_fsdp_stays_unless_axes_cut_the_model_or_the_name_says_otherwise(spec, shared) -> None:
    assert settings(spec).sharding is shared
    kept = workload(spec).staged
    assert kept is not None and kept.sharded is shared
    assert canonical(canonical(spec)) == canonical(spec) == spec


@pytest.mark.parametrize("text", ["data=16", "order=data", "sharded=zero3"])
@pytest.mark.parametrize("name", ["llama3-8b@", "gpt2@parallel=fsdp,"])
def test_fsdp_along_an_axis_takes_as_long_as_fsdp_without(name: str, text: str) -> None:
    bare = latency(name.rstrip("@,"), "8,8", fabric="hgx-h100")
    along = latency(name + text, "8,8", fabric="hgx-h100")
    assert along.compute_ns == bare.compute_ns
    assert along.finish_ns == bare.finish_ns


def test_stated_and_implied_sharding_have_one_name() -> None:
    assert canonical("llama3-8b@tensor=2,sharded=no") == "llama3-8b@tensor=2"
    assert canonical("gpt2@sharded=no") == "gpt2"


_SPREAD = {  # GPUs over which the eight experts of a layer are spread
    "mixtral-8x7b@data=16": 8,
    "mixtral-8x7b@recompute=full": 8,
    "mixtral-8x7b@sharded=zero1": 8,
    "mixtral-8x7b@overlap=experts": 8,
    "mixtral-8x7b@expert=4": 4,
    "mixtral-8x7b@expert=1": 1,
    "mixtral-8x7b@tensor=2,pipeline=2": 1,
    "mixtral-8x7b@parallel=fsdp,data=16": 1,
    "gpt2@data=16": 1,
}


@pytest.mark.parametrize(("spec", "gpus"), _SPREAD.items())
def test_experts_stay_spread_unless_axes_cut_the_model_or_the_name_says_otherwise(
    spec: str, gpus: int
) -> None:
    kept = workload(spec).staged
    assert kept is not None and kept.axes.expert == gpus
    assert canonical(spec) == canonical(canonical(spec))


def test_experts_send_the_same_whether_their_spread_is_stated_or_implied() -> None:
    def sent(settings: str) -> tuple[int, ...]:
        asked = latency(f"mixtral-8x7b@{settings}", "8,8", fabric="hgx-h100")
        assert asked.bytes_per_dimension is not None
        return asked.bytes_per_dimension

    assert sent("data=16") == sent("expert=8")
    assert sent("recompute=full") == sent("recompute=full,expert=8")
    assert sent("expert=1")[0] > 5 * sent("data=16")[0]


def test_one_gpu_for_the_experts_is_a_name_of_its_own_where_it_changes_the_job() -> None:
    assert canonical("gpt2@expert=1") == "gpt2"
    assert canonical("mixtral-8x7b@pipeline=2,expert=1") == "mixtral-8x7b@pipeline=2"
    assert canonical("mixtral-8x7b@expert=1") == "mixtral-8x7b@expert=1"


def test_a_stated_spread_has_a_name_of_its_own_since_only_implied_ones_fit_gangs() -> None:
    implied, said = (f"mixtral-8x7b@{axes}recompute=full" for axes in ("", "expert=8,"))
    assert canonical(said) == said != canonical(implied)
    for spec, fits in ((implied, True), (said, False)):
        staged = workload(spec).staged
        assert staged is not None and (staged.axes.expert, staged.axes.implied) == (8, fits)


def test_parallelism_follows_from_the_settings() -> None:
    assert workload("gpt2").parallelism is Parallelism.DATA
    assert workload("gpt2@parallel=fsdp").parallelism is Parallelism.FSDP
    assert workload("gpt2@tensor=2").parallelism is Parallelism.LAYERWISE
    assert workload("gpt2-moe").parallelism is Parallelism.LAYERWISE
    kinds = {
        phase.collective
        for layer in workload("gpt2-moe").layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    }
    assert kinds == {Collective.NONE, Collective.ALL_TO_ALL, Collective.ALL_REDUCE}
