"""The rows of flowcontrol.apiserver.k8s.io."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="flowcontrol.apiserver.k8s.io",
    resources=(
        Resource(
            group="flowcontrol.apiserver.k8s.io",
            version="v1",
            name="flowschemas",
            kind="FlowSchema",
            namespaced=False,
            subresources=(STATUS,),
        ),
        Resource(
            group="flowcontrol.apiserver.k8s.io",
            version="v1",
            name="prioritylevelconfigurations",
            kind="PriorityLevelConfiguration",
            namespaced=False,
            subresources=(STATUS,),
        ),
    ),
)
