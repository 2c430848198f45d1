"""The options in the line of sbatch, salloc or srun that sacct keeps as SubmitLine.

Source: sbatch(1), salloc(1), srun(1) of Slurm 22.05, which read options as getopt_long(3) does:

- They end at the first word that is not an option: the script or command, then its arguments.
- If an option is given twice, the last one counts.
- Long names may be shortened (`--depend`) as long as they are unambiguous.

Slurm keeps no quotes. So options after a value of two words are lost, unless another column has
that value, as JobName and Comment have (`one_word_each`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Options without a value, or with one that only `=` joins to them. All others take the next word.
_ALONE = (
    "async", "bcast", "bell", "compress", "contiguous", "debugger-test", "disable-status",
    "exact", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "immediate", "interactive",
    "kill-command", "kill-on-bad-exit", "label", "multi-prog", "nice", "no-allocate", "no-bell",
    "no-kill", "no-requeue", "no-shell", "overcommit", "overlap", "oversubscribe", "parsable",
    "preserve-env", "propagate", "pty", "quiet", "quit-on-interrupt", "reboot", "requeue",
    "resv-ports", "send-libs", "share", "spread-job", "stepmgr", "test-only", "unbuffered",
    "usage", "use-min-nodes", "verbose", "version", "wait", "whole", "x11",
)  # fmt: skip
_ALONE_SHORT = "EHOQVWXZhlsuv"
_JOINED_SHORT = "IKk"
"""Letters whose value, if there is one, is in the same word: -I60."""
_SHORT = {"a": "array", "d": "dependency"}
_READ = ("array", "dependency", "ntasks-per-node")
_KIND = re.compile(r"(?!\d+$)([^:=]+)(?::\d+)?")
_NOT_CUT = ("ntasks",)


def options_of(line: str) -> dict[str, str]:
    """The options by their long names, or by their letters if artist does not use them.

    >>> options_of("sbatch --nice=5 -a 0-9%2 --req train.sh --nice=7")
    {'nice': '5', 'array': '0-9%2', 'requeue': ''}
    """
    return _parsed(line.split())[0]


def one_word_each(line: str, *values: str) -> str:
    """The line with these values of options as one word each; sacct may print ` for a quote.

    >>> one_word_each("sbatch -J my job --nice=5 a.sh", "my job")
    'sbatch -J my_job --nice=5 a.sh'
    """
    for value in values:
        if " " in value:
            printed = re.escape(value).replace("`", "[`'\"]")
            line = re.sub(printed, lambda x: x[0].replace(" ", "_"), line, count=1)
    return line


def gpu_kinds_of(line: str) -> list[str]:
    """The kinds of GPUs that a job asks for; none if it takes any.

    >>> [gpu_kinds_of(f"sbatch {x} a.sh") for x in ("--gres=gpu:a100:2,gpu:h100:2", "--gpus=4")]
    [['a100', 'h100'], []]
    """
    asked, found = options_of(line), list[str]()
    for name in ("gres", "gpus", "G", "gpus-per-node", "gpus-per-task"):
        for part in asked.get(name, "").removeprefix("gres:").split(","):
            gres, _, rest = part.partition(":") if name == "gres" else ("gpu", "", part)
            kind = _KIND.fullmatch(rest)
            if gres == "gpu" and kind is not None:
                found.append(kind[1])
    return list(dict.fromkeys(found))


def with_option(line: str, option: str) -> str:
    """The line with one more option, which overrides an earlier one."""
    words = line.split() or ["sbatch"]
    end = _parsed(words)[1]
    return " ".join([*words[:end], option, *words[end:]])


def _parsed(words: Sequence[str]) -> tuple[dict[str, str], int]:
    """The options, and the number of words of the program and its options."""
    found: dict[str, str] = {}
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        name, value, takes_next = _option(words[at], words[0])
        if takes_next and at + 1 < len(words):
            at, value = at + 1, words[at + 1]
        found.pop(name, None)  # the order tells which of two options came last
        found[name] = value
        at += 1
    return found, min(at, len(words))


def _option(word: str, program: str) -> tuple[str, str, bool]:
    """The name and value of an option, and whether the next word is its value."""
    if word.startswith("--"):
        name, joined, value = word[2:].partition("=")
        name = _whole(name)
        return name, value, not joined and not _is_alone(name, program)
    letters = word[1:]
    alone = _ALONE_SHORT.replace("W", "") if _is_srun(program) else _ALONE_SHORT
    while len(letters) > 1 and letters[0] in alone:  # -Hs is -H -s
        letters = letters[1:]
    name, value = letters[0], letters[1:]
    return _SHORT.get(name, name), value, not value and name not in alone + _JOINED_SHORT


def _is_alone(name: str, program: str) -> bool:
    return name in _ALONE and not (name == "wait" and _is_srun(program))


def _is_srun(program: str) -> bool:
    return program.rpartition("/")[2] == "srun"


def _whole(name: str) -> str:
    """The full long name of one that may be shortened."""
    if name in _NOT_CUT:
        return name
    known = (*_READ, *_ALONE)
    if name in known:
        return name
    return next((one for one in known if one.startswith(name)), name)
