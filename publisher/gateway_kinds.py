"""The rows of the kinds of the Gateway API, whose definitions users install."""

from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Resource, whole_tree

GROUP: Final = "gateway.networking.k8s.io"
GRANTS: Final = "referencegrants"


def _row(plural: str, kind: str, *, namespaced: bool = True, version: str = "v1") -> Resource[ReadOnlyTree]:
    return Resource(
        group=GROUP, version=version, plural=plural, kind=kind, namespaced=namespaced, view=whole_tree
    )


GATEWAYS: Final = _row("gateways", "Gateway")
HTTP_ROUTES: Final = _row("httproutes", "HTTPRoute")
GATEWAY_CLASSES: Final = _row("gatewayclasses", "GatewayClass", namespaced=False)
REFERENCE_GRANTS: Final = {
    version: _row(GRANTS, "ReferenceGrant", version=version) for version in ("v1", "v1beta1")
}
