"""The catalogue of models: one row for each, with its network, its paper and how it is trained.

The operators of the networks are in `architectures/`. `models.py` finds a row by name.

Sources of the batch sizes: those of image models are from torchvision's published recipes
(references/classification, 8 GPUs). That of BERT is the batch of the BERT jobs in Dally's
workloads and of NVIDIA's SQuAD figures. For the others, a comment at the row names the source.
A batch that its row calls "assumed" fills a GPU of 80 GB in training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from artist.workload.architectures import convnets, generators, inception, recurrent, sparse_inputs
from artist.workload.architectures.decoders import DECODERS
from artist.workload.architectures.operators import Operator
from artist.workload.architectures.transformers import ENCODERS, GPTS, transformer, transformer_xl
from artist.workload.settings import Settings


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the catalogue.

    - `build`: makes the operators, given `sequence` and `experts` if the model has them.
    - `settings`: how the model is trained unless a spec says otherwise.
    - `aliases`: other names. Names are compared without case, hyphens, underscores and spaces.
    - `positions`: the longest sequence that the model accepts; 0 means any length.
    """

    id: str
    summary: str
    paper: str
    build: Callable[..., tuple[Operator, ...]]
    settings: Settings
    aliases: tuple[str, ...] = ()
    positions: int = 0

    def operators(self, settings: Settings) -> tuple[Operator, ...]:
        """The operators of the model under these settings."""
        sizes = {"sequence": settings.sequence, "experts": settings.experts}
        return self.build(**{key: value for key, value in sizes.items() if value is not None})


# The six models of Dally's Table I are timed by arithmetic alone, without the roofline. Their
# calibrations, and all results that use them, are based on these times.
# BERT: the authors' recipe for SQuAD has sequences of 384 tokens.
_PLAIN = Settings(batch=32, timing="arithmetic")
_IMAGE = Settings(batch=32)
_TEXT = Settings(batch=8, sequence=512)
_GPT = Settings(batch=8, sequence=1024)
_SHARDED = Settings(batch=1, sequence=4096, precision="bf16", parallel="fsdp")

ROWS = (
    Model("alexnet", "AlexNet, images", "arXiv:1404.5997", convnets.alexnet, _PLAIN),
    Model("vgg11", "VGG11, images", "arXiv:1409.1556", convnets.vgg11, _PLAIN, ("vgg",)),
    Model("resnet18", "ResNet-18, images", "arXiv:1512.03385", convnets.resnet18, _PLAIN),
    Model("resnet50", "ResNet-50 v1.5, images", "arXiv:1512.03385", convnets.resnet50, _PLAIN),
    Model(
        "mobilenetv3",
        "MobileNetV3-Large, images",
        "arXiv:1905.02244",
        convnets.mobilenetv3_large,
        replace(_PLAIN, batch=128),
        ("mobilenetv3large",),
    ),
    Model(
        "bert-large",
        "BERT-large uncased with embeddings and pooler, sequences of 384",
        "arXiv:1810.04805",
        ENCODERS["bert-large"].build,
        replace(_PLAIN, sequence=384),
        ("bert",),
        positions=512,
    ),
    Model("vgg16", "VGG16, images", "arXiv:1409.1556", convnets.vgg16, _IMAGE),
    Model("vgg19", "VGG19, images", "arXiv:1409.1556", convnets.vgg19, _IMAGE),
    Model("resnet101", "ResNet-101 v1.5, images", "arXiv:1512.03385", convnets.resnet101, _IMAGE),
    Model("resnet152", "ResNet-152 v1.5, images", "arXiv:1512.03385", convnets.resnet152, _IMAGE),
    Model(
        "wide-resnet101",
        "WideResNet-101-2, images",
        "arXiv:1605.07146",
        convnets.wide_resnet101,
        _IMAGE,
        ("wideresnet101-2",),
    ),
    Model(
        "googlenet",
        "GoogLeNet, images",
        "arXiv:1409.4842",
        inception.googlenet,
        _IMAGE,
        ("inceptionv1",),
    ),
    Model(
        "inceptionv3",
        "Inception-v3, images of 299 x 299",
        "arXiv:1512.00567",
        inception.inception_v3,
        _IMAGE,
        ("inception3",),
    ),
    Model(
        "inceptionv4",
        "Inception-v4, images of 299 x 299 (batch assumed)",
        "arXiv:1602.07261",
        inception.inception_v4,
        _IMAGE,
        ("inception4",),
    ),
    # The most sequences of 384 tokens that a GPU of 12 GB holds, by the authors' repository.
    Model(
        "bert-base",
        "BERT-base uncased with embeddings and pooler, sequences of 384",
        "arXiv:1810.04805",
        ENCODERS["bert-base"].build,
        replace(_TEXT, batch=12, sequence=384),
        positions=512,
    ),
    # 8,192 sequences on 1,024 GPUs (arXiv:1907.11692, section 5).
    Model(
        "roberta-base",
        "RoBERTa-base",
        "arXiv:1907.11692",
        ENCODERS["roberta-base"].build,
        _TEXT,
        ("roberta",),
        positions=512,
    ),
    Model(
        "roberta-large",
        "RoBERTa-large",
        "arXiv:1907.11692",
        ENCODERS["roberta-large"].build,
        _TEXT,
        positions=512,
    ),
    # 8,192 sequences on 256 GPUs (arXiv:1911.03894, section 4).
    Model(
        "camembert",
        "CamemBERT-base",
        "arXiv:1911.03894",
        ENCODERS["camembert"].build,
        replace(_TEXT, batch=32),
        ("camembert-base",),
        positions=512,
    ),
    # 64 streams of 256 tokens per GPU (arXiv:1901.07291, section 5.1).
    Model(
        "xlm",
        "XLM-100, 100 languages",
        "arXiv:1901.07291",
        ENCODERS["xlm"].build,
        Settings(batch=64, sequence=256),
        ("xlm-100",),
        positions=512,
    ),
    # 60 segments of 150 on 4 GPUs (the released recipe for WikiText-103, base).
    Model(
        "transformer-xl",
        "Transformer-XL base for WikiText-103, with memory",
        "arXiv:1901.02860",
        transformer_xl,
        Settings(batch=15, sequence=150),
        ("txl",),
    ),
    # 64 sequences of 512 tokens (Radford et al. 2018, section 4.1).
    Model(
        "gpt1",
        "GPT-1",
        "Radford et al. 2018",
        GPTS["gpt1"].build,
        Settings(batch=64, sequence=512),
        ("gpt", "openai-gpt"),
        positions=512,
    ),
    *(
        Model(
            name,
            f"GPT-2 {size} (batch assumed)",
            "Radford et al. 2019",
            GPTS[name].build,
            _GPT,
            aliases,
            positions=1024,
        )
        for name, size, aliases in (
            ("gpt2", "small", ("gpt2-small",)),
            ("gpt2-medium", "medium", ()),
            ("gpt2-large", "large", ()),
            ("gpt2-xl", "XL", ()),
        )
    ),
    Model(
        "gpt2-moe",
        "GPT-2 small, 8 experts in every other block (batch assumed)",
        "arXiv:2101.03961",
        GPTS["gpt2-moe"].build,
        replace(_GPT, experts=8),
        positions=1024,
    ),
    Model(
        "gpt-moe-128",
        "GPT 350M with 128 experts in every other block (batch assumed)",
        "arXiv:2201.05596",
        GPTS["gpt-moe-128"].build,
        Settings(batch=4, sequence=2048, precision="bf16", experts=128),
        positions=2048,
    ),
    Model(
        "gpt3-xl",
        "GPT-3 XL, 1.3B, on one GPU (batch assumed)",
        "arXiv:2005.14165",
        GPTS["gpt3-xl"].build,
        Settings(batch=4, sequence=2048, precision="bf16"),
        positions=2048,
    ),
    # A replica takes 96 GPUs. 1,536 sequences on 384 GPUs are 384 per replica, in microbatches of
    # one sequence (arXiv:2104.04473, section 5.2).
    Model(
        "gpt3-175b",
        "GPT-3 175B over tensor groups of 8 and 12 pipeline stages",
        "arXiv:2005.14165",
        GPTS["gpt3-175b"].build,
        Settings(
            batch=384,
            sequence=2048,
            precision="bf16",
            tensor=8,
            pipeline=12,
            microbatches=384,
        ),
        ("gpt3",),
        positions=2048,
    ),
    *(
        Model(
            name,
            f"{size}, sharded (batch assumed)",
            paper,
            DECODERS[name].build,
            _SHARDED,
            aliases,
        )
        for name, size, paper, aliases in (
            ("llama2-7b", "Llama 2 7B", "arXiv:2307.09288", ("llama",)),
            ("llama2-13b", "Llama 2 13B", "arXiv:2307.09288", ()),
            ("llama2-70b", "Llama 2 70B", "arXiv:2307.09288", ()),
            ("llama3-8b", "Llama 3 8B", "arXiv:2407.21783", ()),
            ("llama3-70b", "Llama 3 70B", "arXiv:2407.21783", ()),
            ("qwen3-8b", "Qwen3 8B", "arXiv:2505.09388", ()),
            ("qwen3-32b", "Qwen3 32B", "arXiv:2505.09388", ()),
        )
    ),
    # A replica takes 128 GPUs and 32 sequences (arXiv:2407.21783, table 4, row 1).
    Model(
        "llama3-405b",
        "Llama 3 405B over tensor groups of 8 and 16 pipeline stages",
        "arXiv:2407.21783",
        DECODERS["llama3-405b"].build,
        Settings(32, 8192, precision="bf16", tensor=8, pipeline=16, microbatches=32),
    ),
    *(
        Model(
            name,
            f"{size}, {experts} experts of which a token passes {active} (batch assumed)",
            paper,
            DECODERS[name].build,
            Settings(batch=1, sequence=4096, precision="bf16", experts=experts),
        )
        for name, size, experts, active, paper in (
            ("mixtral-8x7b", "Mixtral 8x7B", 8, 2, "arXiv:2401.04088"),
            ("qwen3-30b-a3b", "Qwen3 30B-A3B", 128, 8, "arXiv:2505.09388"),
            ("qwen3-235b-a22b", "Qwen3 235B-A22B", 128, 8, "arXiv:2505.09388"),
            ("deepseek-v3", "DeepSeek-V3", 256, 8, "arXiv:2412.19437"),
            ("gpt-oss-120b", "gpt-oss-120b", 128, 4, "arXiv:2508.10925"),
        )
    ),
    # The mini-batch in the authors' benchmark script for this data set.
    Model(
        "dlrm",
        "DLRM, Criteo Kaggle",
        "arXiv:1906.00091",
        sparse_inputs.dlrm,
        Settings(batch=128),
    ),
    # The authors' mini-batch (arXiv:1706.02216, section 4).
    Model(
        "graphsage",
        "GraphSAGE (mean), Reddit",
        "arXiv:1706.02216",
        sparse_inputs.graphsage,
        Settings(batch=512),
        ("gnn",),
    ),
    # The next five are Gavel's (arXiv:2008.09213, table 2); Shockwave took them over. Batch sizes
    # and lengths are the defaults of Gavel's scripts (github.com/stanford-futuredata/gavel,
    # workloads/pytorch); its job types set batch sizes of their own. Sentences have at most 50
    # words, plus a start and an end token.
    Model(
        "transformer",
        "Transformer base, Multi30k",
        "arXiv:1706.03762",
        transformer,
        Settings(batch=64, sequence=52),
        ("transformer-base",),
    ),
    Model(
        "lstm",
        "LSTM language model, WikiText-2",
        "arXiv:1609.07843",
        recurrent.lstm,
        Settings(batch=20, sequence=35),
        ("lm", "lstm-lm"),
    ),
    Model(
        "recoder",
        "Recoder autoencoder, MovieLens-20M",
        "arXiv:1802.05814",
        sparse_inputs.recoder,
        Settings(batch=2048),
        ("recommendation",),
    ),
    Model(
        "cyclegan",
        "CycleGAN, images of 256 x 256",
        "arXiv:1703.10593",
        generators.cyclegan,
        Settings(batch=1),
    ),
    # A process updates the network after 20 steps of its game.
    Model(
        "a3c",
        "A3C with an LSTM, Pong",
        "arXiv:1602.01783",
        recurrent.a3c,
        Settings(batch=20),
        ("a3c-lstm",),
    ),
)
