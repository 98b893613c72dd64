"""Texts that are no numbers of 64 bits, where OpenKruise reads numbers."""

import pytest

from mockube.client.podview import PodView
from mockube.packs.kruise.controllers.cloneset.spec import partition_replicas
from mockube.packs.kruise.inplace import record
from tests.support.controllers import pods

LONG = "9" * 5_000


@pytest.mark.parametrize(
    ("partition", "kept"), [(f"{LONG}%", 0), (f"0.{LONG}%", 1), (f"{'0' * 5_000}50%", 2), (LONG, 0)]
)
def test_numbers_in_partitions(partition, kept):
    assert partition_replicas(partition, 3) == kept


@pytest.mark.parametrize(
    "text",
    [
        '{"revision":"a","graceSeconds":"9"}',
        '{"revision":"a","graceSeconds":1e300}',
        '{"revision":"a","graceSeconds":[9]}',
        '{"revision":"a","graceSeconds":1.5}',
        '{"revision":"a","metaDataPatch":5}',
        '{"revision":"a","metaDataPatch":"W10="}',
        '{"revision":"a","metaDataPatch":"eyJtZXRhZGF0YSI6NX0="}',
        '{"revision":"a","containerImages":[1]}',
    ],
)
def test_invalid_grace_annotation_is_ignored(text):
    pod = pods.pod(annotations={record.ANNOTATION_GRACE: text})
    assert record.delayed_change(PodView.of(pod)) is None
