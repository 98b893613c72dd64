"""Which release of Kubernetes a server is of, and which of its kinds and features are on."""

from typing import Annotated

from msgspec import Struct

from mockube.apimachinery.flags import VERSION, Flag, boolean, comma_separated
from mockube.apimachinery.schema import minors
from mockube.apiserver.config.feature_gates import read_gates
from mockube.apiserver.kinds.resource_config import Pair, read_pairs


class Features(Struct, frozen=True, kw_only=True):
    """Features"""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
            minors.read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[tuple[str, bool], ...],
        Flag("feature gates, as A=true,B=false", read_gates, repeats=True),
    ] = ()
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
        Flag("packs of kinds to serve besides Kubernetes' own: kruise (none)", comma_separated, repeats=True),
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
        """The version that is reported instead of the release's own; "" for that."""
        return self.version if self.version.startswith("v") else ""
