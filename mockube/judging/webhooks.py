"""Judgement 12: are webhooks and conversions safe: failure policies, scopes, side effects, timeouts, and no lost fields?"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.history.field_values import changes_of

from .context import Context, NotApplicable, about
from .findings import Judgement, Level
from .object_kinds import is_definition, is_webhook
from .trial_cluster import TrialCluster

_LONG_SECONDS: Final = 10
_FAIL: Final = "Fail"
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_POD_KINDS: Final = frozenset({"pods", "*", "*/*", "pods/*"})
_CREATIONS: Final = frozenset({"CREATE", "*"})
_WRITES: Final = _CREATIONS | {"UPDATE", "DELETE"}
_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_MEMBERS: Final[Mapping[str, str]] = {"items": "[]", "additionalProperties": ".*"}
"""What a schema says of all members of a list or of a map, with how a path names them."""
Problem = tuple[str, Level, str, str]
"""The rule, the level, the subject and the message of a finding."""


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    trees = setup.release.trees()
    configurations = [tree for tree in trees if is_webhook(tree)]
    definitions = [tree for tree in trees if is_definition(tree)]
    versions = [name for tree in definitions if len(name := served_versions(tree)) > 1]
    if not configurations and not versions:
        raise NotApplicable("the manifests have no webhooks, and their definitions one version each")
    own_groups = {str(tree["spec"].get("group")) for tree in definitions}
    names = ", ".join(about(tree) for tree in configurations) or "no webhooks"
    judgement.did.append(f"Read {names}, and the versions of {len(definitions)} definitions.")
    judgement.by_hand = [
        f"kubectl get {str(tree['kind']).lower()} {meta.name(tree)} -o yaml" for tree in configurations
    ]
    workload = setup.workload(setup.release)
    namespace = setup.namespace if workload is None else workload.namespace
    for tree in configurations:
        for rule, level, subject, message in webhook_problems(tree, own_groups, namespace):
            judgement.add(rule, level, subject, message)
    for tree in definitions:
        for rule, level, subject, message in conversion_problems(tree):
            judgement.add(rule, level, subject, message)
    judgement.figures["webhooks"] = str(sum(len(tree.get("webhooks") or ()) for tree in configurations))
    judgement.figures["definitions with several versions"] = str(len(versions))
    if len(served_versions(setup.sample.definition)) > 1:
        with context.trial() as trial:
            _convert(context, judgement, trial)
    if configurations and not setup.webhook_services:
        judgement.did.append(
            "The webhooks were not called in any judgement: --webhook-service=NAMESPACE/NAME=HOST:PORT says where the operator serves them."
        )


def served_versions(definition: ReadOnlyTree) -> Sequence[str]:
    versions: Sequence[ReadOnlyTree] = definition["spec"].get("versions") or ()
    return [str(each["name"]) for each in versions if each.get("served")]


def webhook_problems(configuration: ReadOnlyTree, own_groups: set[str], namespace: str) -> Iterator[Problem]:
    """Yield what is dangerous in a configuration of webhooks."""
    for webhook in configuration.get("webhooks") or ():
        subject = f"{configuration['kind']} {meta.name(configuration)}, {webhook.get('name')}"
        fails = webhook.get("failurePolicy", _FAIL) == _FAIL
        seconds = webhook.get("timeoutSeconds", _LONG_SECONDS)
        if fails and not _is_limited(webhook):
            yield from _scope_problems(webhook, subject, own_groups, namespace)
        if not fails and configuration["kind"].startswith("Validating"):
            yield (
                "webhook-ignored",
                Level.NOTE,
                subject,
                "has failurePolicy Ignore: while it is down, what it would refuse is accepted",
            )
        if isinstance(seconds, int) and seconds > _LONG_SECONDS:
            yield (
                "webhook-slow",
                Level.WARNING,
                subject,
                f"may take {seconds} s: while it is down, each request waits so long; 10 s is the default",
            )
        if webhook.get("sideEffects") not in (None, "None", "NoneOnDryRun"):
            yield (
                "webhook-side-effects",
                Level.WARNING,
                subject,
                f"has sideEffects {webhook['sideEffects']}: a dry run is refused",
            )


def _is_limited(webhook: ReadOnlyTree) -> bool:
    """Return whether a webhook gets only objects that carry a label, or that fulfil a condition."""
    selector = webhook.get("objectSelector") or {}
    asks_for_label = any(
        each.get("operator") in ("In", "Exists") for each in selector.get("matchExpressions") or ()
    )
    return bool(selector.get("matchLabels") or asks_for_label or webhook.get("matchConditions"))


def _scope_problems(
    webhook: ReadOnlyTree, subject: str, own_groups: set[str], namespace: str
) -> Iterator[Problem]:
    resources = {*_foreign_resources(webhook, own_groups)}
    if not resources:
        return
    foreign = sorted(f"{resource}.{group}" if group else resource for resource, group in resources)
    selector = webhook.get("namespaceSelector") or {}
    if matches_namespace(selector, "kube-system"):
        yield (
            "webhook-blocks-cluster",
            Level.ERROR,
            subject,
            f"gets {', '.join(foreign)} of all namespaces with failurePolicy Fail: while it is down, nobody can write them, in kube-system neither",
        )
    created = _foreign_resources(webhook, own_groups, _CREATIONS)
    gets_pods = any(resource in _POD_KINDS and group in ("", "*") for resource, group in created)
    if gets_pods and matches_namespace(selector, namespace):
        yield (
            "webhook-blocks-itself",
            Level.ERROR,
            subject,
            f"gets pods of its own namespace {namespace} with failurePolicy Fail: when all its pods are gone, no new one can be created",
        )


def _foreign_resources(
    webhook: ReadOnlyTree, own_groups: set[str], verbs_of_interest: AbstractSet[str] = _WRITES
) -> Iterator[tuple[str, str]]:
    """Yield the resources, with their groups, that a webhook gets when they are written and that are not the operator's."""
    for rule in webhook.get("rules") or ():
        verbs = {*(rule.get("operations") or ())}
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                if group not in own_groups and verbs & verbs_of_interest:
                    yield str(resource), str(group)


def matches_namespace(selector: ReadOnlyTree, namespace: str) -> bool:
    """Return whether a selector matches a namespace of which only the label with its name is known."""
    labels = {_NAMESPACE_LABEL: namespace}
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_fulfils(each, labels) for each in selector.get("matchExpressions") or ())


def _fulfils(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(expression.get("operator", ""), True)


def conversion_problems(definition: ReadOnlyTree) -> Iterator[Problem]:
    """Yield what is wrong with the versions of a definition."""
    spec = definition["spec"]
    if (spec.get("conversion") or {}).get("strategy", "None") != "None":
        return
    versions: Sequence[ReadOnlyTree] = spec.get("versions") or ()
    storage = next((each for each in versions if each.get("storage")), None)
    if storage is None:
        return
    for version in versions:
        lost = sorted(lost_fields(_schema(version), _schema(storage))) if version.get("served") else ()
        if lost:
            yield (
                "conversion-missing",
                Level.ERROR,
                f"{meta.name(definition)} {version['name']}",
                f"has fields that {storage['name']}, which is stored, does not have, and the conversion is None, so that they are lost: {', '.join(lost[:6])}",
            )


def _schema(version: ReadOnlyTree) -> ReadOnlyTree:
    schema: ReadOnlyTree = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def lost_fields(schema: ReadOnlyTree, stored: ReadOnlyTree, path: str = "") -> Iterator[str]:
    """Yield the fields of a schema that the server prunes when it stores an object by another schema."""
    others = stored.get("additionalProperties")
    keeps_others = bool(stored.get("x-kubernetes-preserve-unknown-fields") or others)
    fields: Mapping[str, Any] = stored.get("properties") or {}
    for name, part in (schema.get("properties") or {}).items():
        own = f"{path}.{name}" if path else name
        if name in _OBJECT_FIELDS and (not path or stored.get("x-kubernetes-embedded-resource")):
            continue
        counterpart = fields.get(name, others)
        if isinstance(counterpart, Mapping):
            yield from lost_fields(part, counterpart, own)
        elif not keeps_others:
            yield own
    for name, mark in _MEMBERS.items():
        part, counterpart = schema.get(name), stored.get(name)
        if isinstance(part, Mapping) and isinstance(counterpart, Mapping):
            yield from lost_fields(part, counterpart, f"{path}{mark}")
        elif part and not counterpart and not keeps_others:
            yield f"{path}{mark}"


def _convert(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    """Write the sample, and read it in each served version."""
    sample = context.setup.sample
    conversion = (sample.definition["spec"].get("conversion") or {}).get("strategy", "None")
    if conversion == "Webhook" and not context.setup.webhook_services:
        judgement.did.append(
            "The conversion was not tried: its webhook is not reachable without --webhook-service."
        )
        return
    if context.setup.webhook_services:
        trial.start_and_settle()
    trial.create_others()
    trial.create_resource()
    judgement.did.append(
        f"Created the sample, read it in {', '.join(served_versions(sample.definition))}, and wrote each back."
    )
    before = trial.resource()
    for version in served_versions(sample.definition):
        _round_trip(judgement, trial, before, version)


def _round_trip(judgement: Judgement, trial: TrialCluster, before: Tree, version: str) -> None:
    group = trial.setup.sample.group
    name = {"apiVersion": f"{group}/{version}", "kind": before["kind"], "metadata": before["metadata"]}
    try:
        other = dict(trial.cluster.get(name))
        trial.cluster.apply({**other, "metadata": _own_metadata(other)})
        after = trial.resource()
    except ApiError as error:
        judgement.add(
            "conversion-loses-fields",
            Level.ERROR,
            f"{about(before)} as {version}",
            f"cannot be converted: {error.message}",
        )
        return
    lost = [str(each) for each in changes_of(before.get("spec") or {}, after.get("spec") or {})]
    if lost:
        judgement.add(
            "conversion-loses-fields",
            Level.ERROR,
            f"{about(before)} as {version}",
            "is another one when it was read in this version and written back",
            details=lost[:8],
        )


def _own_metadata(tree: ReadOnlyTree) -> Mapping[str, Any]:
    return {name: tree["metadata"][name] for name in ("name", "namespace") if name in tree["metadata"]}
