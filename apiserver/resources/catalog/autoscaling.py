"""The rows of autoscaling."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="autoscaling",
    versions=("v2", "v1"),
    resources=(
        Resource(
            group="autoscaling",
            version="v2",
            name="horizontalpodautoscalers",
            kind="HorizontalPodAutoscaler",
            storage_version=("autoscaling", "v2"),
            categories=("all",),
            short_names=("hpa",),
            subresources=(STATUS,),
        ),
        Resource(
            group="autoscaling",
            version="v1",
            name="horizontalpodautoscalers",
            kind="HorizontalPodAutoscaler",
            storage_version=("autoscaling", "v2"),
            categories=("all",),
            short_names=("hpa",),
            subresources=(STATUS,),
        ),
    ),
)
