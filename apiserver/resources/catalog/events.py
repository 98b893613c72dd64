"""The rows of events.k8s.io: another face of the core group's events, which are stored once."""

from apiserver.resources.spec import Group, Resource

GROUP = Group(
    name="events.k8s.io",
    resources=(
        Resource(
            group="events.k8s.io",
            version="v1",
            name="events",
            kind="Event",
            short_names=("ev",),
            storage_version=("", "v1"),
            selectable=(
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ),
        ),
    ),
)
