"""A pod for scheduling decisions: requests, host ports and affinity terms, computed once and used for each node. Pure."""

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.effective_requests import (
    EffectiveRequests,
    effective_requests,
    size_fields,
)
from mockube.client.component_helpers.pod_requests import Amounts, HostPort, host_ports
from mockube.client.podview import PodView

from .affinity_terms import NO_TERMS, AffinityTerms, terms_of
from .signature import signature_of

_MAX_SIGNATURES: Final = 4096
_PRECOMPUTED_FIELDS: Final = ("containers", "initContainers", "resources", "overhead", "priority", "affinity")
"""The fields of a spec from which a PodInfo is computed."""


class PodInfo(Struct, frozen=True, kw_only=True, eq=False):
    """A pod and its precomputed requests and terms; kube-scheduler's PodInfo."""

    view: PodView
    gates: FeatureGates
    """The gates by which the requests are computed."""
    priority: int
    requested: Amounts
    nonzero_requested: Amounts
    scored_requests: Amounts
    """The requests by which nodes are scored for the pod; `nonzero_requested` counts once it runs on a node."""
    host_ports: tuple[HostPort, ...] = field(default=())
    terms: AffinityTerms = NO_TERMS
    claims: tuple[str, ...] = ()
    """The names of the claims that the pod names."""
    signature: str
    """Pods of the same signature count alike, and fit on the same nodes, apart from their claims."""

    @classmethod
    def of(cls, view: PodView, gates: FeatureGates) -> "PodInfo":
        spec, requests = view.object["spec"], effective_requests(view.object, gates)
        claims, priority = _claim_names(spec), spec.get("priority") or 0
        signature = signature_of(view, requests, priority)
        requests = _shared(signature, requests)
        return cls(
            view=view,
            gates=gates,
            priority=priority,
            requested=requests.requested,
            nonzero_requested=requests.nonzero,
            scored_requests=requests.scored,
            host_ports=tuple(host_ports(spec)),
            terms=terms_of(view),
            claims=claims,
            signature=signature,
        )

    def with_view(self, view: PodView) -> "PodInfo":
        """Return the pod after an update. Requests and terms are computed again only if their fields changed."""
        is_same_spec = all(
            self.spec.get(field) == view.object["spec"].get(field) for field in _PRECOMPUTED_FIELDS
        )
        if (
            is_same_spec
            and self.view.labels == view.labels
            and size_fields(self.view.object) == size_fields(view.object)
        ):
            return replace(self, view=view)
        return PodInfo.of(view, self.gates)

    def counts_as(self, other: "PodInfo") -> bool:
        """Return whether a node counts the pod as it counts another version: by the same requests, terms and labels."""
        return self.signature == other.signature and self.view.deleting == other.view.deleting

    @property
    def spec(self) -> ReadOnlyTree:
        spec: ReadOnlyTree = self.view.object["spec"]
        return spec

    @property
    def affinity(self) -> ReadOnlyTree:
        return self.spec.get("affinity") or {}


_requests: Final[dict[str, EffectiveRequests]] = {}
"""The requests of pods by signature."""


def _shared(signature: str, requests: EffectiveRequests) -> EffectiveRequests:
    """Return the requests of a pod before with this signature, which are equal and take memory once."""
    if len(_requests) >= _MAX_SIGNATURES:
        _requests.clear()
    return _requests.setdefault(signature, requests)


def _claim_names(spec: ReadOnlyTree) -> tuple[str, ...]:
    """Return the names of the claims of a pod's volumes."""
    volumes = spec.get("volumes")
    if not volumes:
        return ()
    return tuple(
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    )
