"""Which release of Kubernetes a server is of, and which of its kinds and features are on."""

from typing import Annotated

from msgspec import Struct

from mockube.apimachinery.flags import VERSION, Flag, boolean, words
from mockube.apimachinery.schema import minors
from mockube.apiserver.config.feature_gates import read_gates
from mockube.apiserver.kinds.resource_config import Pair, read_pairs


class Features(Struct, frozen=True, kw_only=True):
    """Features"""

    kubernetes_version: Annotated[
        str,
        Flag(
            f"the minor release of Kubernetes to be, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
            minors.read_minor,
            metavar="MINOR",
        ),
    ] = minors.NEWEST
    version: Annotated[str, VERSION] = "false"
    feature_gates: Annotated[
        tuple[tuple[str, bool], ...],
        Flag("what to switch of kube-apiserver's features, as A=true,B=false", read_gates, repeats=True),
    ] = ()
    runtime_config: Annotated[
        tuple[Pair, ...],
        Flag(
            "which APIs to serve besides those that are on by default, or not to serve, as GROUP/VERSION=true,"
            " GROUP/VERSION/RESOURCE=false, api/all, api/ga, api/beta or api/alpha (none)",
            read_pairs,
            repeats=True,
            metavar="SETTINGS",
        ),
    ] = ()
    enable_priority_and_fairness: Annotated[
        bool,
        Flag(
            "name the flow schema and priority level of a request in its response; they limit nothing (true)",
            boolean,
        ),
    ] = True
    packs: Annotated[
        tuple[str, ...], Flag("kinds to serve besides Kubernetes' own: kruise (none)", words, repeats=True)
    ] = ()
    simulate_metrics: Annotated[
        bool,
        Flag(
            "serve metrics.k8s.io and its kin: what is simulated of what nodes and pods use (false)", boolean
        ),
    ] = False

    @property
    def git_version(self) -> str:
        """The version that is reported instead of the release's own; "" for that."""
        return self.version if self.version.startswith("v") else ""
