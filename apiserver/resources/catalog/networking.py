"""The rows of networking.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="networking.k8s.io",
    resources=(
        Resource(
            group="networking.k8s.io",
            version="v1",
            name="ingressclasses",
            kind="IngressClass",
            namespaced=False,
        ),
        Resource(
            group="networking.k8s.io",
            version="v1",
            name="ingresses",
            kind="Ingress",
            short_names=("ing",),
            stored_at="ingress",
            subresources=(STATUS,),
        ),
        Resource(
            group="networking.k8s.io",
            version="v1",
            name="ipaddresses",
            kind="IPAddress",
            namespaced=False,
            short_names=("ip",),
            selectable=(
                "spec.parentRef.group",
                "spec.parentRef.resource",
                "spec.parentRef.namespace",
                "spec.parentRef.name",
            ),
        ),
        Resource(
            group="networking.k8s.io",
            version="v1",
            name="networkpolicies",
            kind="NetworkPolicy",
            short_names=("netpol",),
        ),
        Resource(
            group="networking.k8s.io",
            version="v1",
            name="servicecidrs",
            kind="ServiceCIDR",
            namespaced=False,
            subresources=(STATUS,),
        ),
    ),
)
