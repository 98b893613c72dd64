"""The rules: their names, how severe what they find is, and the check of all objects by them. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.groups import GroupKind
from mockube.lint.findings import ObjectFinding, Outcome
from mockube.lint.objects import LintObject

from . import addresses, network_policies, pod_data, probes, references, releases, scaling, services
from .object_set import ObjectSet
from .problem import Problem

IGNORE: Final = "lint.mockube.dev/ignore"
"""The annotation of an object with the names of rules that do not apply to it, or `all`."""
ALL: Final = "all"

Check = Callable[[ObjectSet], Iterator[Problem]]


class Rule(Struct, frozen=True, kw_only=True):
    name: str
    outcome: Outcome
    """How severe it is, unless a finding is less certain than others."""
    summary: str
    """What it finds."""
    check: Check


_BROKEN, _WARNED, _NOTED = Outcome.BROKEN, Outcome.WARNED, Outcome.NOTED

RULES: Final = tuple(
    Rule(name=name, outcome=outcome, summary=summary, check=check)
    for name, outcome, summary, check in (
        (
            "probe-port",
            _BROKEN,
            "a probe or handler names a port that its container does not have",
            probes.probe_ports,
        ),
        (
            "probe-undeclared-port",
            _BROKEN,
            "a probe uses a number that no container declares, and that no argument or variable mentions",
            probes.probe_undeclared_ports,
        ),
        (
            "probe-request",
            _WARNED,
            "the path of a probe has a port or an address in it, or a probe uses HTTP on a port for HTTPS",
            probes.probe_requests,
        ),
        ("service-selector", _BROKEN, "a Service selects no pods", services.service_selectors),
        (
            "service-target-port",
            _BROKEN,
            "no selected pod has the named target port",
            services.target_port_names,
        ),
        (
            "service-undeclared-port",
            _WARNED,
            "the selected pods declare ports, and not the number of the target port",
            services.target_port_numbers,
        ),
        (
            "service-address",
            _WARNED,
            "a variable or argument has the address of a Service with a port that it does not have",
            addresses.address_ports,
        ),
        (
            "service-backend",
            _BROKEN,
            "an Ingress, route, webhook, conversion webhook or APIService sends to a Service, port or kind that does not exist",
            services.backends,
        ),
        (
            "stateful-set-service",
            _BROKEN,
            "the Service of a StatefulSet does not exist, or selects other pods",
            services.governing_services,
        ),
        (
            "data-key",
            _BROKEN,
            "a ConfigMap or Secret does not have the key that a pod needs",
            pod_data.data_keys,
        ),
        (
            "sub-path",
            _BROKEN,
            "a mount has a subPath that is no file of its ConfigMap or Secret",
            pod_data.sub_paths,
        ),
        (
            "volume-mount",
            _BROKEN,
            "a container of a StatefulSet mounts what is neither a volume nor a claim template",
            pod_data.volume_mounts,
        ),
        (
            "missing-data",
            _BROKEN,
            "a pod needs a ConfigMap, Secret or claim that does not exist",
            pod_data.missing_data,
        ),
        (
            "secret",
            _WARNED,
            "the certificate of an Ingress or the credentials of a registry are in a Secret that does not exist",
            references.missing_secrets,
        ),
        (
            "service-account",
            _BROKEN,
            "a pod or a binding names a ServiceAccount that does not exist",
            references.missing_accounts,
        ),
        ("role", _WARNED, "a binding names a role that does not exist", references.missing_roles),
        (
            "class",
            _BROKEN,
            "an object names a StorageClass, IngressClass, PriorityClass or RuntimeClass that does not exist",
            references.missing_classes,
        ),
        (
            "scale-target",
            _BROKEN,
            "an autoscaler names a workload or kind that does not exist",
            scaling.scale_targets,
        ),
        (
            "scale-requests",
            _BROKEN,
            "an autoscaler needs the utilization of a resource that containers do not request",
            scaling.autoscaler_requests,
        ),
        ("budget-selector", _BROKEN, "a PodDisruptionBudget selects no pods", scaling.budget_selectors),
        ("policy-selector", _BROKEN, "a NetworkPolicy selects no pods", network_policies.policy_selectors),
        (
            "policy-port",
            _BROKEN,
            "NetworkPolicies refuse the requests that a Service sends, or those from outside",
            network_policies.refused_ports,
        ),
        (
            "policy-peer",
            _BROKEN,
            "a peer of a NetworkPolicy misspells the labels of pods",
            network_policies.policy_peers,
        ),
        (
            "policy-client",
            _WARNED,
            "NetworkPolicies refuse the requests of pods that have the address of a Service",
            network_policies.refused_clients,
        ),
        (
            "policy-dns",
            _WARNED,
            "NetworkPolicies let pods send to others, and not look up their names",
            network_policies.refused_names,
        ),
        (
            "hook-order",
            _BROKEN,
            "helm creates an object only after it has waited for the pods that need it",
            releases.hook_order,
        ),
        ("duplicate", _BROKEN, "two objects of a chart or folder have the same name", releases.duplicates),
        ("job-wait", _NOTED, "`helm install --wait` does not wait for a Job", releases.jobs_without_wait),
        (
            "external-data",
            _NOTED,
            "a pod needs a ConfigMap, Secret or claim that is not in the files",
            pod_data.external_data,
        ),
        (
            "external-object",
            _NOTED,
            "an object names a ServiceAccount, role, class or Secret that is not in the files",
            references.external_references,
        ),
        (
            "external-service",
            _NOTED,
            "an Ingress, route or webhook sends to a Service that is not in the files",
            services.external_backends,
        ),
    )
)
RULE_NAMES: Final = tuple(rule.name for rule in RULES)


class RelationOptions(Struct, frozen=True, kw_only=True):
    namespace: str
    """The namespace of objects that name none; "" if it is the default, and charts may be for another one."""
    release: str
    """The release of charts."""
    disabled: Collection[str] = ()
    """The names of rules that are off, or `all`."""


def find_problems(
    objects: Sequence[LintObject], options: RelationOptions, packs: Collection[GroupKind] = ()
) -> Mapping[int, Sequence[ObjectFinding]]:
    """Return what the rules find, by the id of the object. `packs` are the kinds of packs."""
    found: dict[int, dict[ObjectFinding, None]] = {}
    if ALL in options.disabled:
        return {}
    object_set = ObjectSet(objects, namespace=options.namespace, release=options.release, packs=packs)
    for rule in RULES:
        if rule.name not in options.disabled:
            for problem in rule.check(object_set):
                if not _is_ignored(problem.item, rule.name):
                    found.setdefault(id(problem.item), {})[_finding(rule, problem)] = None
    return {key: [*each] for key, each in found.items()}


def _finding(rule: Rule, problem: Problem) -> ObjectFinding:
    return ObjectFinding(
        outcome=problem.outcome or rule.outcome,
        message=f"{problem.field}: {problem.message}" if problem.field else problem.message,
        field=problem.field,
        rule=rule.name,
    )


def _is_ignored(item: LintObject, name: str) -> bool:
    metadata = item.tree.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    value = annotations.get(IGNORE) if isinstance(annotations, dict) else None
    return isinstance(value, str) and not {name, ALL}.isdisjoint(map(str.strip, value.split(",")))
