"""The rows of batch."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="batch",
    resources=(
        Resource(
            group="batch",
            version="v1",
            name="cronjobs",
            kind="CronJob",
            categories=("all",),
            short_names=("cj",),
            subresources=(STATUS,),
        ),
        Resource(
            group="batch",
            version="v1",
            name="jobs",
            kind="Job",
            selectable=("status.successful",),
            categories=("all",),
            subresources=(STATUS,),
        ),
    ),
)
