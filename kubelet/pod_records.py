"""What the kubelets of this manager keep of pods, one record for each."""

from mockube.client.component import ComponentContext
from mockube.container_runtime.records import Records


class PodRecords(Records):
    """The records of pods, by uid."""


def pod_records(context: ComponentContext) -> PodRecords:
    records: PodRecords = context.shared.setdefault(PodRecords, PodRecords())
    return records
