"""Groups runs into settings, policies and replicates, so that only like runs are compared.

A **setting** is a scenario without its policy, seed and permutation: the same cluster and
the same kind of work. Runs of one policy with the same options in one setting are **replicates**;
they differ in seed or permutation. Example: two policies, two cluster sizes and two seeds make
eight runs: two settings, each with two policies of two replicates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artist.cluster.fabric_options import changes_text
from artist.config import ABOUT_THE_TRACE, SIZES
from artist.registry import UnknownNameError
from artist.report.quantities import Quantity, units_of
from artist.report.reader import Decides, RecordedRun
from artist.results.terms.number_text import DisplayUnit

Replicate = tuple[int, int]
"""Seed and permutation."""

# Scenario keys in which the runs of one setting may differ.
_WITHIN = ("policy", "policy_options", "seed", "permutation")
_WORK = ("trace", "arrivals", "jobs", *ABOUT_THE_TRACE)
"""Scenario keys that define the work. Results of different work cannot be compared."""
_LONGEST = 40
_LONGEST_SLUG = 60
CLUSTER = "cluster"
"""Replaces all keys that describe a cluster, if a run of the study has a tree or a cluster file."""
_SIZES_AND_TREE = (*SIZES, "tree", "cluster")


@dataclass(frozen=True, slots=True)
class Setting:
    """The runs on one cluster and one kind of work."""

    index: int
    label: str
    slug: str
    """The label as part of a file name, unique."""
    differs: Mapping[str, str]
    """Scenario keys in which settings of the study differ -> this setting's value in words."""
    runs: Mapping[str, Mapping[Replicate, RecordedRun]]
    """Policy label -> replicate -> run."""

    def shared_by(self, policies: Iterable[str]) -> list[Replicate]:
        """The replicates that some policies all have."""
        return sorted(set.intersection(*(set(self.runs[policy]) for policy in policies)))

    def comparable(self) -> list[tuple[str, ...]]:
        """Policies that share replicates, most policies first; no policy is in two of these.

        All policies are one group if they all have a common replicate. Otherwise the first group is
        the largest that shares a replicate; ties go to the one with most shared replicates. The
        rest is grouped in the same way. A policy that shares no replicate is left out.
        """
        together, left = [], list(self.runs)
        while len(left) > 1:
            replicates = dict.fromkeys(key for policy in left for key in sorted(self.runs[policy]))
            with_one = {key: tuple(p for p in left if key in self.runs[p]) for key in replicates}
            most = max(with_one.values(), key=lambda some: (len(some), len(self.shared_by(some))))
            if len(most) < 2:
                break
            together.append(most)
            left = [policy for policy in left if policy not in most]
        return together

    def values(self, policy: str, metric: str) -> dict[Replicate, float]:
        """A metric of each replicate of a policy; none if the policy did not run here."""
        return {key: run.metric(metric) for key, run in self.runs.get(policy, {}).items()}

    @property
    def cancelled(self) -> bool:
        """Whether a run cancelled jobs, so that policies finished other ones."""
        return any(
            "jobs_cancelled" in run.summary for runs in self.runs.values() for run in runs.values()
        )

    @property
    def replicated(self) -> bool:
        """Whether a policy has several replicates."""
        return any(len(replicates) > 1 for replicates in self.runs.values())

    @property
    def firsts(self) -> dict[str, RecordedRun]:
        """The first replicate of each policy, for figures that can show only one."""
        return {policy: next(iter(runs.values())) for policy, runs in self.runs.items()}


@dataclass(frozen=True, slots=True)
class Study:
    """All runs of a report."""

    runs: Sequence[RecordedRun]
    policies: tuple[str, ...]
    """Policy labels in order of appearance; the first is the baseline."""
    settings: tuple[Setting, ...]
    policy_slugs: tuple[str, ...]
    units: Mapping[Quantity, DisplayUnit]
    """The unit of each kind of time, the same in all charts."""
    worlds: tuple[Decides, ...] = ()
    """The results of comparisons in several worlds, if the runs belong to such comparisons."""

    def policy_slug(self, policy: str) -> str:
        """A policy's label as part of a file name, unique."""
        return self.policy_slugs[self.policies.index(policy)]

    def baseline(self, setting: Setting) -> str:
        """The policy that the others of a setting are compared with."""
        return next(policy for policy in self.policies if policy in setting.runs)

    def settings_as_policies(self) -> list[Setting]:
        """If all runs have one policy: settings of the same work, compared as policies are.

        The labels of the settings replace those of policies. Empty if there are several policies.
        """
        if len(self.policies) > 1:
            return []
        alike: dict[str, list[Setting]] = {}
        for setting in self.settings:
            run = next(iter(setting.firsts.values()))
            alike.setdefault(_text([run.scenario.get(key) for key in _WORK]), []).append(setting)
        return [
            replace(some[0], runs={one.label: one.runs[self.policies[0]] for one in some})
            for some in alike.values()
        ]

    def tone(self, policy: str) -> str:
        """The colour of a policy, the same on the whole page."""
        return f"s{self.policies.index(policy)}"


def group(runs: Sequence[RecordedRun], baseline: str | None = None) -> Study:
    """Sort runs into settings, policies and replicates.

    Raises:
        UnknownNameError: no run has the policy that is to be the baseline.
    """
    keys = [json.dumps(_setting_values(run), sort_keys=True, default=str) for run in runs]
    described = _described(runs)
    differing = _differing(described)
    policy_labels = _policy_labels(runs)
    grouped: dict[str, dict[str, dict[Replicate, RecordedRun]]] = {}
    firsts: dict[str, int] = {}
    for index, (run, key, label) in enumerate(zip(runs, keys, policy_labels, strict=True)):
        firsts.setdefault(key, index)
        replicates = grouped.setdefault(key, {}).setdefault(label, {})
        replicate = (int(run.scenario.get("seed", 0)), int(run.scenario.get("permutation", 0)))
        if replicate in replicates:
            # The same scenario ran twice, e.g. with two versions of artist: show both.
            replicates = grouped[key].setdefault(f"{label} ({run.name})", {})
        replicates[replicate] = run
    values = {key: described[first] for key, first in firsts.items()}
    gpus = {key: runs[first].metric("gpus") for key, first in firsts.items()}
    ordered = sorted(grouped, key=lambda key: _order(values[key], differing, gpus[key]))
    policies = _ordered(dict.fromkeys(p for key in grouped for p in grouped[key]), baseline)
    words = [
        {name: _in_words(name, values[key].get(name)) for name in differing} for key in ordered
    ]
    labels = _labels([values[key] for key in ordered], words)
    settings = []
    for index, (label, slug) in enumerate(zip(labels, slugs(labels), strict=True)):
        there = grouped[ordered[index]]
        by_policy = {one: dict(sorted(there[one].items())) for one in policies if one in there}
        settings.append(Setting(index, label, slug, words[index], by_policy))
    return Study(runs, policies, tuple(settings), tuple(slugs(policies)), units_of(runs))


def _labels(values: Sequence[Mapping[str, Any]], words: Sequence[Mapping[str, str]]) -> list[str]:
    """The names of settings: what differs. Unset values are left out if names stay unique."""
    brief = [
        " · ".join(word for key, word in said.items() if given.get(key) is not None)
        for given, said in zip(values, words, strict=True)
    ]
    if all(brief) and len(set(brief)) == len(brief):
        return brief
    return [
        " · ".join(said.values()) or _only_label(given)
        for given, said in zip(values, words, strict=True)
    ]


def _ordered(policies: Iterable[str], baseline: str | None) -> tuple[str, ...]:
    """The policies with the baseline first."""
    known = tuple(policies)
    if baseline is not None and baseline not in known:
        raise UnknownNameError("policy", baseline, known, "the runs have " + ", ".join(known))
    return tuple(sorted(known, key=lambda policy: policy != baseline)) if baseline else known


def slugs(labels: Iterable[str]) -> list[str]:
    """The labels as parts of file names: letters, digits and hyphens, no two alike.

    A path in brackets becomes its last name. The parts of a cluster are joined by `and`:
    `[2x8, [8, 4, 4]]` is `2x8-and-8-4-4`.
    """
    taken: dict[str, None] = {}
    for label in labels:
        text = re.sub(r"\], |, \[", " and ", re.sub(r"\(.*/", "(", label.lower()))
        plain = re.sub("[^a-z0-9]+", "-", text).strip("-")[:_LONGEST_SLUG].rstrip("-") or "run"
        slug, count = plain, 2
        while slug in taken:
            slug, count = f"{plain}-{count}", count + 1
        taken[slug] = None
    return list(taken)


def _setting_values(run: RecordedRun) -> Mapping[str, Any]:
    return {key: value for key, value in run.scenario.items() if key not in _WITHIN}


def _described(runs: Sequence[RecordedRun]) -> list[Mapping[str, Any]]:
    """What distinguishes the settings of runs.

    If a run has a tree or a cluster file, sizes cannot be compared with it. Then each cluster is
    described by its shape, or the name of its file.
    """
    scenarios = [_setting_values(run) for run in runs]
    if all(scenario.get("tree") is scenario.get("cluster") is None for scenario in scenarios):
        return scenarios
    return [
        {
            CLUSTER: _shape(run),
            **{key: value for key, value in scenario.items() if key not in _SIZES_AND_TREE},
        }
        for run, scenario in zip(runs, scenarios, strict=True)
    ]


def _shape(run: RecordedRun) -> str:
    """The name of the cluster file, since files of one shape may differ in kinds and links.

    Without a file, the shape in the summary. Earlier versions did not write that, so it may have to
    come from the scenario.
    """
    if isinstance(name := run.scenario.get("cluster"), str):
        return name
    shape = run.summary.get("cluster")
    if isinstance(shape, str):
        return shape
    tree = run.scenario.get("tree")
    return "x".join(str(run.scenario.get(key)) for key in SIZES) if tree is None else _text(tree)


def _differing(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys whose values differ between the scenarios, in order of appearance."""
    keys = dict.fromkeys(key for scenario in scenarios for key in scenario)
    return [key for key in keys if len({_text(s.get(key)) for s in scenarios}) > 1]


def _order(
    values: Mapping[str, Any], differing: Iterable[str], gpus: float
) -> list[tuple[bool, float, str]]:
    """The sort key of a setting: numbers by size, then words by spelling; clusters by their GPUs.

    `racks` comes last among the keys, so neighbouring settings differ in their racks first.
    """
    named = sorted(differing, key=lambda key: (key in ("racks", CLUSTER), key))
    return [
        (False, gpus, str(values[key])) if key == CLUSTER else _sortable(values.get(key))
        for key in named
    ]


def _sortable(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (not number, float(value) if number else 0.0, _text(value))


def _policy_labels(runs: Sequence[RecordedRun]) -> list[str]:
    """For each run its policy's name and the options in which runs of that policy differ."""
    options: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        options.setdefault(_policy(run), []).append(_options(run))
    differing = {policy: _differing(given) for policy, given in options.items()}
    labels = []
    for run in runs:
        given = _options(run)
        shown = [f"{k}={_short(given[k])}" for k in differing[_policy(run)] if k in given]
        labels.append(" ".join((_policy(run), *shown)))
    return labels


def _policy(run: RecordedRun) -> str:
    return str(run.scenario["policy"])


def _options(run: RecordedRun) -> Mapping[str, Any]:
    options = run.scenario.get("policy_options") or {}
    return options if isinstance(options, dict) else {}


def fabric_changes(options: Any) -> str:
    """What a scenario changes of its fabric, in words; empty if nothing."""
    try:
        return changes_text(options or {})
    except (AttributeError, TypeError, ValueError, ArithmeticError):  # an edited manifest
        return _short(options)


def _in_words(key: str, value: Any) -> str:
    if key == "racks":
        return "1 rack" if value == 1 else f"{value} racks"
    if key in ("trace", CLUSTER):
        return str(value)
    if key == "fabric_options":
        return f"fabric: {fabric_changes(value) or 'as in its file'}"
    if key == "arrivals":
        return f"arrivals: {value}"
    return f"{key.replace('_', ' ')}: {'not set' if value is None else _short(value)}"


def _only_label(values: Mapping[str, Any]) -> str:
    """The label where there is only one setting, so that nothing differs."""
    racks = _in_words("racks", values["racks"]) if values.get("racks") else ""
    cluster = values.get(CLUSTER, racks)
    return " · ".join(part for part in (cluster, str(values.get("trace", ""))) if part)


def _short(value: Any) -> str:
    text = _text(value).strip('"')
    if isinstance(value, dict):
        text = ", ".join(f"{key}={_short(one)}" for key, one in value.items()) or "none"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
