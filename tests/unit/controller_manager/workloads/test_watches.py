"""Which changes of its primary object wake a controller, and after which delay."""

from datetime import timedelta

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import DEPLOYMENTS
from mockube.controller_manager.workloads.watches import watches_of

AT_ONCE, LATER = watches_of(DEPLOYMENTS, delay=timedelta(seconds=1), max_delay=timedelta(seconds=5))
TREE = {"metadata": {"name": "web", "generation": 1, "resourceVersion": "1"}, "status": {"replicas": 1}}
ASKED = meta.with_metadata(TREE, generation=2, resourceVersion="2")
LABELLED = meta.with_metadata(TREE, labels={"a": "b"}, resourceVersion="2")
TOLD = meta.with_metadata({**TREE, "status": {"replicas": 2}}, resourceVersion="2")


@pytest.mark.parametrize(
    ("change", "woken", "later"),
    [
        pytest.param(Change(None, TREE), ["web"], [], id="created"),
        pytest.param(Change(TREE, None), ["web"], [], id="deleted"),
        pytest.param(Change(TREE, ASKED), ["web"], [], id="spec changed"),
        pytest.param(Change(TREE, LABELLED), ["web"], [], id="metadata changed"),
        pytest.param(Change(TREE, TOLD), [], ["web"], id="status changed"),
        pytest.param(Change(TREE, TREE), [], ["web"], id="no change"),
    ],
)
def test_spec_changes_are_immediate_and_status_changes_delayed(change, woken, later):
    assert [key.name for key in AT_ONCE.keys(None, change)] == woken
    assert [key.name for key in LATER.keys(None, change)] == later


def test_only_status_changes_are_debounced():
    assert (AT_ONCE.delay, AT_ONCE.max_delay) == (timedelta(), timedelta())
    assert (LATER.delay, LATER.max_delay) == (timedelta(seconds=1), timedelta(seconds=5))
