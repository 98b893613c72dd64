"""The strategy of each resource that has one."""

from collections.abc import Mapping
from types import MappingProxyType

from apimachinery.groups import GroupResource
from apiserver.resources.strategies.namespaces import NAMESPACES
from apiserver.resources.strategy import Strategy

SPEC = ("spec",)


def _generations() -> Mapping[GroupResource, Strategy]:
    """Those that are special only in that a change of some fields makes a new generation."""
    return {
        GroupResource(group, name): Strategy(generation=fields)
        for group, fields, names in _GENERATIONS
        for name in names.split()
    }


_GENERATIONS = (
    ("", SPEC, "replicationcontrollers"),
    ("", ("template",), "podtemplates"),
    ("apps", SPEC, "daemonsets deployments replicasets statefulsets"),
    ("batch", SPEC, "cronjobs jobs"),
    ("networking.k8s.io", SPEC, "ingresses ingressclasses networkpolicies"),
    ("policy", SPEC, "poddisruptionbudgets"),
    ("discovery.k8s.io", ("addressType", "endpoints", "ports"), "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", SPEC, "flowschemas prioritylevelconfigurations"),
    ("apiextensions.k8s.io", SPEC, "customresourcedefinitions"),
    ("scheduling.k8s.io", ("value", "description", "globalDefault", "preemptionPolicy"), "priorityclasses"),
    ("resource.k8s.io", SPEC, "deviceclasses"),
    (
        "admissionregistration.k8s.io",
        SPEC,
        "mutatingadmissionpolicies mutatingadmissionpolicybindings "
        "validatingadmissionpolicies validatingadmissionpolicybindings",
    ),
    (
        "admissionregistration.k8s.io",
        ("webhooks",),
        "mutatingwebhookconfigurations validatingwebhookconfigurations",
    ),
)

STRATEGIES: Mapping[GroupResource, Strategy] = MappingProxyType(
    {**_generations(), GroupResource("", "namespaces"): NAMESPACES}
)
