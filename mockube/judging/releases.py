"""Judgement 11: does the operator do the same in every minor release of Kubernetes, without removed and deprecated APIs?"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from mockube.apiserver.control.recorder import RecordedCall
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.lint.check import CheckOptions
from mockube.lint.findings import SEVERITY as LINT_SEVERITY
from mockube.lint.findings import Outcome as LintOutcome
from mockube.lint.minor_ranges import format_minors
from mockube.lint.report import make_report
from mockube.lint.run import check_all

from .context import Context
from .findings import Judgement, Level
from .reference import written_names
from .trial_cluster import TrialCluster

_DEPRECATED: Final = "api-deprecated"


class _Difference(Struct, frozen=True):
    """How the operator differs in a minor release, as a finding says it."""

    rule: str
    text: str
    level: Level = Level.ERROR
    message: str = ""


def judge(context: Context, judgement: Judgement) -> None:
    chosen = [*context.setup.release.objects]
    judgement.did += [
        f"Checked the manifests against the API servers of {format_minors(chosen)}, as `mockube lint` does.",
        "Ran the operator in a cluster of each, compared which objects it wrote with those of the newest one, and which APIs it asked for that are not served or deprecated there.",
    ]
    files = " ".join(context.setup.release.names)
    judgement.by_hand = [
        f"mockube lint {files}",
        "# the set-up with `mockube up --kubernetes-version=1.31`, or another minor",
        *context.by_hand(f"kubectl get {context.resource} -o yaml"),
    ]
    _lint(context, judgement)
    expected = _names(context)
    found: dict[_Difference, list[str]] = {}
    for minor in chosen:
        context.on_step(f"releases: {minor}")
        for difference in {*_differences(context, minor, expected)}:
            found.setdefault(difference, []).append(minor)
    # What is in all minors is an API that no release serves, such as one of a project that is not installed.
    differing = {
        difference: of_minors
        for difference, of_minors in found.items()
        if difference.rule == _DEPRECATED or len(of_minors) < len(chosen)
    }
    for difference, of_minors in differing.items():
        judgement.add(
            difference.rule,
            difference.level,
            difference.text,
            f"in {format_minors(of_minors)}{difference.message}",
        )
    others = {each for found, of in differing.items() if found.level is Level.ERROR for each in of}
    judgement.figures["minors"] = format_minors(chosen)
    judgement.figures["the same in"] = str(len(chosen) - len(others))


def _lint(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    inputs = setup.release.objects
    report = make_report(
        inputs,
        asyncio.run(check_all(inputs, CheckOptions(namespace=setup.namespace, disabled_rules=["all"]))),
    )
    for row in report.rows:
        for merged in row.findings:
            outcome = merged.finding.outcome
            if LINT_SEVERITY[outcome] >= LINT_SEVERITY[LintOutcome.WARNED]:
                level = Level.WARNING if outcome in (LintOutcome.WARNED, LintOutcome.DROPPED) else Level.ERROR
                judgement.add(
                    "manifest-deprecated",
                    level,
                    row.item.title,
                    f"{outcome.value} in {format_minors(merged.minors)}: {merged.finding.message}",
                )


def _names(context: Context) -> set[str]:
    state = context.expected.state
    return {f"{kind} {name}" for kind, _, name in state.objects}


def _differences(context: Context, minor: str, expected: set[str]) -> Iterator[_Difference]:
    """Yield how the operator differs in a minor release, and what it uses there that is deprecated."""
    with context.trial(minor=minor, nodes=1) as trial:
        for tree, _ in trial.refused:
            yield _Difference(
                "minor-differs",
                f"{tree.get('kind')} {tree['metadata']['name']} of the manifests is refused",
            )
        trial.create_others()
        trial.start_and_settle()
        trial.create_resource()
        limit = context.setup.timeout / 3
        trial.wait_for(lambda: expected <= _written(context, trial), limit)
        for name in sorted(expected - _written(context, trial)):
            yield _Difference("minor-differs", f"{name} is not written")
        for path in sorted(_not_served(trial)):
            yield _Difference("api-not-served", f"{path}, which the operator asks for, is not served")
        if trial.exits:
            yield _Difference("minor-differs", f"The operator ended with the code {trial.exits[0].code}")
        yield from deprecated_apis(trial)


def deprecated_apis(trial: TrialCluster) -> Iterator[_Difference]:
    """Yield what the operator has asked for, and of which the server has warned."""
    apis = {(each.group, each.version, each.resource) for each in trial.calls()}
    for kind in kinds_of(trial.minor).all:
        row = kind.resource
        if row.deprecated and (row.group, row.version, row.name) in apis:
            level = Level.WARNING if "unavailable" in row.deprecated else Level.NOTE
            yield _Difference(
                _DEPRECATED, f"{row.api_version} {row.name}", level, f", of which it warns: {row.deprecated}"
            )


def _written(context: Context, trial: TrialCluster) -> set[str]:
    state = context.expected.state
    names = written_names(trial)
    identities = {
        (
            f"{each['kind']}.{group}" if (group := each["apiVersion"].rpartition("/")[0]) else each["kind"],
            each["metadata"].get("namespace", ""),
            each["metadata"]["name"],
        )
        for each in names
    }
    found = {
        f"{identity[0]} {state.labels[identity][2]}" for identity in identities if identity in state.labels
    }
    for kind, _, name in state.objects:
        prefix = name.partition("*")[0]
        if "*" in name and any(each[0] == kind and each[2].startswith(prefix) for each in identities):
            found.add(f"{kind} {name}")
    return found


def _not_served(trial: TrialCluster) -> set[str]:
    """Return the versions of groups that the operator asks for, and that the server does not serve, with resources."""
    not_found = (_path_parts(call) for call in trial.calls() if call.code == 404)
    missing = {
        version
        for version, rest in not_found
        if version and any(part != "namespaces" for part in rest if part)
    }
    if not missing:
        return missing
    return missing - {_path_parts(call)[0] for call in trial.cluster.calls(user="*") if call.code == 200}


def _path_parts(call: RecordedCall) -> tuple[str, Sequence[str]]:
    """Return the version of a group whose path a request has, such as /apis/apps/v1, and what follows; "" for another path."""
    parts = call.uri.partition("?")[0].split("/")
    return ("/".join(parts[:4]), parts[4:]) if parts[1:2] == ["apis"] else ("", ())
