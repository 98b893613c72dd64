"""The rows of apps."""

from apiserver.resources.spec import SCALE, STATUS, Group, Resource

GROUP = Group(
    name="apps",
    resources=(
        Resource(group="apps", version="v1", name="controllerrevisions", kind="ControllerRevision"),
        Resource(
            group="apps",
            version="v1",
            name="daemonsets",
            kind="DaemonSet",
            categories=("all",),
            short_names=("ds",),
            subresources=(STATUS,),
        ),
        Resource(
            group="apps",
            version="v1",
            name="deployments",
            kind="Deployment",
            categories=("all",),
            short_names=("deploy",),
            subresources=(
                SCALE,
                STATUS,
            ),
        ),
        Resource(
            group="apps",
            version="v1",
            name="replicasets",
            kind="ReplicaSet",
            selectable=("status.replicas",),
            categories=("all",),
            short_names=("rs",),
            subresources=(
                SCALE,
                STATUS,
            ),
        ),
        Resource(
            group="apps",
            version="v1",
            name="statefulsets",
            kind="StatefulSet",
            categories=("all",),
            short_names=("sts",),
            subresources=(
                SCALE,
                STATUS,
            ),
        ),
    ),
)
