"""The release of Kubernetes that a server implements, its feature gates, and the APIs and packs that are enabled."""

from typing import Annotated, Final

from mockube.apiserver.kinds.field_gates import FIELD_GATES, RULE_GATES
from mockube.apiserver.kinds.resource_config import Pair, read_pairs
from mockube.component_base.flags import Flag, boolean, comma_separated
from mockube.component_base.release_options import ReleaseOptions

_GATES: Final = (
    "AllowUnsafeMalformedObjectDeletion", "ComponentFlagz", "ComponentStatusz", "DetectCacheInconsistency",
    "WatchList", "WatchListCompression",
)  # fmt: skip
IMPLEMENTED_GATES: Final = FIELD_GATES.union(RULE_GATES, _GATES)
"""Gates that this server implements both ways. All others have their default."""


class Features(ReleaseOptions, frozen=True, kw_only=True):
    """Features"""

    runtime_config: Annotated[
        tuple[Pair, ...],
        Flag(
            "APIs to turn on or off, as GROUP/VERSION=true, GROUP/VERSION/RESOURCE=false, or "
            "api/all, api/ga, api/beta, api/alpha (none)",
            read_pairs,
            repeats=True,
            metavar="SETTINGS",
        ),
    ] = ()
    enable_priority_and_fairness: Annotated[
        bool,
        Flag(
            "name the flow schema and priority level of a request in its response; requests are "
            "not limited by them (true)",
            boolean,
        ),
    ] = True
    packs: Annotated[
        tuple[str, ...],
        Flag("packs of kinds to serve besides Kubernetes' own (none)", comma_separated, repeats=True),
    ] = ()
    simulate_metrics: Annotated[
        bool,
        Flag(
            "serve metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io with "
            "simulated usage (false)",
            boolean,
        ),
    ] = False

    @property
    def git_version(self) -> str:
        """The version that is reported instead of the release's own version; "" for the latter."""
        return self.version if self.version.startswith("v") else ""
