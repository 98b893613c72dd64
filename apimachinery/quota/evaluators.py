"""The registry of quota evaluators by resource."""

from typing import Final

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.pod_sizes import SizeRules

from .devices import DeviceClaimEvaluator, Devices
from .evaluator import Evaluator, ObjectCount
from .pods import PodEvaluator
from .services_and_claims import ClaimEvaluator, ServiceEvaluator

IGNORED: Final = frozenset(
    {
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
    }
)
"""The resources that quotas ignore."""


class Evaluators(dict[GroupResource, Evaluator]):
    """The evaluators by resource; a missing one is created on first use and only counts objects."""

    def __init__(self, devices: Devices, gates: FeatureGates) -> None:
        # Quotas do not count the status of resources of the pod itself.
        rules = SizeRules.of(gates)._replace(has_pod_resizes=False)
        special = (
            PodEvaluator(rules),
            ServiceEvaluator(),
            ClaimEvaluator(),
            DeviceClaimEvaluator(devices, rules),
        )
        super().__init__({evaluator.resource: evaluator for evaluator in special})

    def __missing__(self, resource: GroupResource) -> Evaluator:
        evaluator = self[resource] = ObjectCount(resource)
        return evaluator
