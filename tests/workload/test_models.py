"""Does the catalogue have the published counts of parameters, arithmetic and layers?"""

import pytest

from artist.errors import ConfigError
from artist.trace.foreign.gavel import V100_STEPS_PER_S
from artist.trace.stats import step_s
from artist.workload.architectures.operators import Conv, Image, OperatorKind, linear
from artist.workload.gpus import Precision, gpu
from artist.workload.layers import Collective, Parallelism, quantised
from artist.workload.models import (
    canonical,
    catalogue,
    model_names,
    operators,
    parameters,
    settings,
    summary,
    workload,
)

A100 = gpu("a100", Precision.TF32, roofline=False)

# Published totals. Image models: torchvision's documentation; of Inception-v4, timm's. Exact
# counts of released models: BERT-large, RoBERTa, CamemBERT (encoder, embeddings and pooler), GPT-2,
# Llama, Qwen3, Mixtral, DeepSeek-V3 (without its second prediction); Transformer-XL: its released
# training log.
PUBLISHED_PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg11": 132_863_336,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "wide-resnet101": 126_886_696,
    "mobilenetv3": 5_483_032,
    "googlenet": 6_624_904,
    "inceptionv3": 27_161_264,
    "inceptionv4": 42_679_816,
    "bert-large": 335_141_888,
    "bert-base": 109_482_240,
    "roberta-base": 124_645_632,
    "roberta-large": 355_359_744,
    "camembert": 110_621_952,
    "transformer-xl": 151_107_538,
    "gpt1": 116_534_784,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-v3": 671_026_404_352,
}

# Billions of parameters that a token passes, as the models' papers and cards say, and the number
# of experts among them. Qwen3-30B-A3B has 3.3 billion, Qwen3-235B-A22B 22 billion.
ACTIVE = {
    "mixtral-8x7b": (12.9, 2),
    "qwen3-30b-a3b": (3.35, 8),
    "qwen3-235b-a22b": (22, 8),
    "deepseek-v3": (37, 8),
}

# No count is published of these models for these data sets: from their papers and scripts, by hand.
BY_HAND = {
    # 12 attentions of 4 matrices in the layers and 6 to the source; 12 feed-forwards; the tables.
    "transformer": 18 * (4 * (512 * 512 + 512) + 2 * 512)
    + 12 * (2 * 512 * 2048 + 2048 + 512 + 2 * 512)
    + (2911 + 3149) * 512,
    "lstm": 2 * 33_278 * 200 + 33_278 + 2 * (4 * 200 * (200 + 200) + 2 * 4 * 200),
    "recoder": 2 * 20_108 * 200 + 200 + 20_108,
    # Windows of 8 x 8 and 4 x 4, which leave 9 x 9 of 84 x 84; 256 cells; 6 actions and a value.
    "a3c": 16 * (4 * 8 * 8 + 1)
    + 32 * (16 * 4 * 4 + 1)
    + 256 * (32 * 9 * 9 + 1)
    + 4 * 256 * (256 + 256 + 2)
    + 7 * (256 + 1),
}

# Published in rounded form: XLM-100 (arXiv:1911.02116, table 1), GPT-3 XL (1.3 billion in
# arXiv:2005.14165, table 2.1; 1.316 for the same sizes in arXiv:2304.03208, table 1), GPT-3
# (arXiv:2104.04473, table 2), 350M+MoE-128 (arXiv:2201.05596, table 1), gpt-oss-120b
# (arXiv:2508.10925, table 1), DLRM for Criteo Kaggle
# (arXiv:1906.00091, section 5), GraphSAGE on Reddit (Ryu and Eo, table I),
# CycleGAN (what the authors' code prints of a generator and of a discriminator).
PUBLISHED_ROUNDED = {
    "xlm": 570e6,
    "gpt3-xl": 1.316e9,
    "gpt3-175b": 174.6e9,
    "gpt-moe-128": 13e9,
    "gpt-oss-120b": 116.83e9,
    "dlrm": 540e6,
    "graphsage": 0.33e6,
    "cyclegan": 2 * (11.378e6 + 2.765e6),
}

# Giga multiply-accumulates per image ("GFLOPS" in torchvision's documentation).
PUBLISHED_GMACS = {
    "alexnet": 0.71,
    "vgg11": 7.61,
    "resnet18": 1.81,
    "resnet50": 4.09,
    "mobilenetv3": 0.22,
    "vgg16": 15.47,
    "vgg19": 19.63,
    "resnet101": 7.80,
    "resnet152": 11.51,
    "wide-resnet101": 22.75,
    "googlenet": 1.50,
    "inceptionv3": 5.71,
}

# Layers with weights, counted in the papers' figures.
LAYERS = {
    "alexnet": 8,
    "vgg11": 11,
    "resnet18": 18 + 3,  # and the three shortcuts that change the shape
    "resnet50": 50 + 4,
    "mobilenetv3": 64,
    "bert-large": 1 + 24 * 6 + 1,
}

SIX = ("alexnet", "vgg11", "resnet18", "resnet50", "mobilenetv3", "bert-large")


def test_the_catalogue_begins_with_the_six_models_of_dallys_table() -> None:
    assert tuple(model_names()[:6]) == SIX


def test_every_model_has_a_published_count() -> None:
    assert set(model_names()) - {"gpt2-moe"} == {
        *PUBLISHED_PARAMETERS, *PUBLISHED_ROUNDED, *BY_HAND,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), BY_HAND.items())
def test_parameters_equal_a_count_by_hand(name: str, expected: int) -> None:
    assert parameters(name) == expected


# On one V100, in fp32, as Gavel measured. The steps of an LSTM follow one another, and Recoder
# draws the items of a batch on the host: arithmetic leaves out both.
@pytest.mark.parametrize(
    ("job_type", "model", "most"),
    [
        ("Transformer (batch size 64)", "transformer", 10),
        ("ResNet-50 (batch size 64)", "resnet50@batch=64", 10),
        ("LM (batch size 20)", "lstm", 40),
        ("Recommendation (batch size 2048)", "recoder", 80),
        ("CycleGAN", "cyclegan", 10),
    ],
)
def test_steps_are_shorter_than_on_gavels_v100_but_of_its_order(job_type, model, most) -> None:
    measured_s = 1 / V100_STEPS_PER_S[job_type][1]
    assert 1 < measured_s / step_s(model) < most


@pytest.mark.parametrize(("name", "published"), PUBLISHED_PARAMETERS.items())
def test_parameters_equal_the_published_count(name: str, published: int) -> None:
    assert parameters(name) == summary(name).parameters == published
    chosen = settings(name)
    if chosen.experts is None:
        undivided = "parallel=data" if chosen.parallel == "fsdp" else "tensor=1,pipeline=1"
        iteration = workload(f"{name}@{undivided}")
        width = Precision(chosen.precision).width
        assert sum(layer.weight_grad.comm_bytes for layer in iteration.layers) == width * published


@pytest.mark.parametrize(("name", "billions", "active"), [(k, *v) for k, v in ACTIVE.items()])
def test_a_token_passes_the_published_number_of_parameters(name, billions, active) -> None:
    passed = sum(
        operator.parameters * active // operator.experts
        if operator.experts > 1
        else operator.parameters
        for operator in operators(name)
    )
    assert passed / 1e9 == pytest.approx(billions, rel=0.02)
    # A layer of a token has as many MACs as weights; scores of attention come on top.
    arithmetic = sum(operator.macs for operator in operators(f"{name}@sequence=1"))
    assert arithmetic == pytest.approx(passed - parameters_of_tables(name), rel=0.01)


def parameters_of_tables(name: str) -> int:
    """Parameters that only are looked up."""
    tables = [x.parameters for x in operators(name) if x.kind is OperatorKind.LOOKUP]
    return sum(tables)


@pytest.mark.parametrize("name", ACTIVE)
def test_tokens_are_sent_to_all_their_experts_and_back(name: str) -> None:
    """This holds where experts are narrower than the model, too, as in Qwen3 and DeepSeek-V3."""
    hidden = {"mixtral-8x7b": 4096, "qwen3-30b-a3b": 2048, "qwen3-235b-a22b": 4096}.get(name, 7168)
    layers = [x for x in workload(name).layers if ".experts." in x.name]
    assert [x.name.rpartition(".")[2] for x in layers[:4]] == [
        "dispatch",
        "gate_up",
        "down",
        "combine",
    ]
    for layer in (layers[0], layers[3]):
        assert layer.forward.collective is layer.input_grad.collective is Collective.ALL_TO_ALL
        assert layer.forward.comm_bytes == 2 * 4096 * hidden * ACTIVE[name][1]


@pytest.mark.parametrize(("name", "published"), PUBLISHED_ROUNDED.items())
def test_parameters_are_near_the_published_figure(name: str, published: float) -> None:
    assert parameters(name) == pytest.approx(published, rel=0.012)


def test_experts_add_their_feed_forwards() -> None:
    """GPT-2 small; 6 of 12 blocks have 7 more feed-forwards of 2 x 768 x 3072 and a router."""
    one = 2 * 768 * 3072 + 3072 + 768
    assert parameters("gpt2-moe") == 124_439_808 + 6 * (7 * one + 768 * 8)
    assert parameters("gpt2-moe@experts=16") == 124_439_808 + 6 * (15 * one + 768 * 16)


@pytest.mark.parametrize(("name", "published"), PUBLISHED_GMACS.items())
def test_arithmetic_equals_the_published_figure(name: str, published: float) -> None:
    """torchvision measures without the auxiliary classifier, which only training has."""
    layers = (one for one in catalogue[name].build() if not one.name.startswith("auxiliary"))
    macs = sum(operator.macs for operator in layers)
    assert round(macs / 1e9, 2) == published


@pytest.mark.parametrize(("name", "layers"), LAYERS.items())
def test_layers_equal_the_papers_count(name: str, layers: int) -> None:
    assert len(workload(name).layers) == summary(name).layers == layers


@pytest.mark.parametrize("name", [*SIX, "vgg19", "resnet152", "roberta-large", "gpt2-xl", "dlrm"])
def test_every_layer_reduces_its_gradient_and_nothing_else(name: str) -> None:
    answer = workload(name)
    assert answer.name == name
    assert answer.parallelism is Parallelism.DATA
    assert len({layer.name for layer in answer.layers}) == len(answer.layers)
    for layer in answer.layers:
        assert layer.weight_grad.collective is Collective.ALL_REDUCE
        assert layer.weight_grad.comm_bytes > 0
        assert layer.forward.collective is Collective.NONE
        assert layer.forward.compute_us == layer.input_grad.compute_us
        assert layer.forward.compute_us == layer.weight_grad.compute_us
    assert quantised(answer).layers != ()


def test_one_convolution_by_hand() -> None:
    # ResNet's first: 64 filters of 3 x 7 x 7 over 112 x 112 outputs, scale and shift.
    first = Conv(64, kernel=7, stride=2).operator("conv1", Image(3, 224))
    assert first.parameters == 64 * 3 * 7 * 7 + 2 * 64 == 9536
    assert first.macs == 118_013_952
    # 2 x 118,013,952 x 32 FLOPs at 156 TFLOP/s x 0.147.
    assert A100.compute_us(first, batch=32) == pytest.approx(329.36, abs=1e-3)
    assert workload("resnet50").layers[0].forward.compute_us == A100.compute_us(first, 32)


def test_one_depthwise_convolution_by_hand() -> None:
    depthwise = Conv(64, kernel=3, stride=2, groups=64).operator("d", Image(64, 112))
    assert depthwise.parameters == 64 * 9 + 128
    assert depthwise.macs == 56 * 56 * 64 * 9


def test_one_linear_layer_by_hand() -> None:
    layer = linear("q", 1024, 1024, rows=384, norm=True)
    assert layer.parameters == 1024 * 1024 + 3 * 1024
    assert layer.macs == 384 * 1024 * 1024
    assert layer.kind is OperatorKind.MATMUL


def test_iterations_take_what_nvidia_measured() -> None:
    # DeepLearningExamples, A100-80GB, TF32: the two models the shares come from.
    for name, samples_per_s in {"resnet50": 938, "bert-large": 61.5}.items():
        layers = workload(name).layers
        iteration_us = sum(
            phase.compute_us
            for layer in layers
            for phase in (layer.forward, layer.input_grad, layer.weight_grad)
        )
        batch = summary(name).batch_per_gpu
        assert batch / iteration_us * 1e6 == pytest.approx(samples_per_s, rel=0.01)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("VGG", "vgg11"),
        ("VGG-11", "vgg11"),
        ("BERT", "bert-large"),
        ("BERT large", "bert-large"),
        ("BERT-large", "bert-large"),
        ("bert_large", "bert-large"),
        ("MobileNetV3", "mobilenetv3"),
        ("mobilenet_v3_large", "mobilenetv3"),
        ("AlexNet", "alexnet"),
        ("ResNet18", "resnet18"),
        ("ResNet-50", "resnet50"),
    ],
)
def test_the_traces_spellings_are_understood(spelling: str, name: str) -> None:
    assert canonical(spelling) == name
    assert workload(spelling) == workload(name)


def test_an_unknown_model_is_a_named_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"model 'ResNet51'.*'resnet50'.*artist list models"):
        workload("ResNet51")


@pytest.mark.parametrize("name", ["SuperNet", "BERT-Medium", "yolov3"])
def test_a_model_that_is_only_a_little_alike_is_not_suggested(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^unknown model '{name}' \(artist list models\)$"):
        workload(name)


def test_a_file_of_layers_is_sent_to_its_option() -> None:
    with pytest.raises(ConfigError, match=r"list models; .* of layers as --workload FILE\)$"):
        workload("layers.txt")


def test_building_a_workload_twice_gives_the_same_object() -> None:
    assert workload("vgg11") is workload("vgg11")
