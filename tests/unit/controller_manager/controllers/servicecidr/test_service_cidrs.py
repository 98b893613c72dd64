"""ServiceCIDR: finalizer, Ready condition, and deletion when no address depends on it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import meta
from mockube.apimachinery.status import Forbidden
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import IP_ADDRESSES, SERVICE_CIDRS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.servicecidr.controller import (
    ALLOCATOR,
    FINALIZER,
    MANAGED_BY,
    SERVICE_CIDR,
    can_be_deleted,
)
from tests.support.controllers.fake_api_server import FakeApiServer

KEY = Key("", "own")


def cluster_with_ranges(*cidrs, deleting=False):
    server = FakeApiServer(SERVICE_CIDR, SteppedClock())
    range_(server, "own", *(cidrs or ("10.0.0.0/24",)), deleting=deleting)
    return server


def range_(ranges, name, *cidrs, deleting=False):
    metadata = {"name": name}
    if deleting:
        metadata |= {"deletionTimestamp": format_time(ranges.clock.now()), "finalizers": [FINALIZER]}
    return ranges.add(SERVICE_CIDRS, {"metadata": metadata, "spec": {"cidrs": list(cidrs)}})


def address(ranges, text, by=ALLOCATOR):
    return ranges.add(IP_ADDRESSES, {"metadata": {"name": text, "labels": {MANAGED_BY: by}}, "spec": {}})


def own_range(ranges):
    return ranges.get(SERVICE_CIDRS, "own", "")


def ready(ranges):
    (condition,) = own_range(ranges)["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def test_service_cidr_gets_finalizer_and_ready_condition():
    ranges = cluster_with_ranges()
    ranges.reconcile(KEY)
    assert meta.finalizers(own_range(ranges)) == [FINALIZER]
    assert ready(ranges) == ("True", "", "Kubernetes Service CIDR is ready")
    assert len(ranges.done) == 2
    assert ranges.reconcile(KEY) == ([], None)


def test_service_cidr_is_deleted_after_grace_period():
    ranges = cluster_with_ranges(deleting=True)
    assert ranges.plan(KEY).requeue_after == timedelta(seconds=10)
    ranges.clock.advance(9)
    assert ranges.plan(KEY).actions == ()
    ranges.clock.advance(1)
    ranges.reconcile(KEY)
    assert not meta.finalizers(own_range(ranges))
    assert ranges.reconcile(KEY) == ([], None)


def test_service_cidr_with_exclusive_address_is_kept():
    ranges = cluster_with_ranges(deleting=True)
    address(ranges, "10.0.0.7")
    ranges.clock.advance(20)
    ranges.reconcile(KEY)
    assert ready(ranges) == (
        "False",
        "Terminating",
        "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
    )
    assert ranges.reconcile(KEY) == ([], None)
    ranges.remove(IP_ADDRESSES, "10.0.0.7", "")
    ranges.reconcile(KEY)
    assert not meta.finalizers(own_range(ranges))


@pytest.mark.parametrize(
    ("text", "others", "goes"),
    [
        ("10.0.0.7", ["10.0.0.0/16"], True),
        ("10.0.0.7", ["10.0.0.0/24"], True),
        ("10.0.0.7", ["10.0.0.0/28"], True),
        ("10.0.0.77", ["10.0.0.0/28"], False),
        ("10.0.0.15", ["10.0.0.0/28"], False),
        ("10.0.1.7", [], True),
        ("10.0.0.0", [], True),
        ("10.0.0.255", [], True),
        ("fd00::7", [], True),
    ],
    ids=[
        "in a larger range",
        "in the same range",
        "in a smaller range",
        "beside a smaller range",
        "a smaller range's last",
        "outside",
        "the first",
        "the last",
        "of another family",
    ],
)
def test_addresses_covered_by_other_cidrs_allow_deletion(text, others, goes):
    ranges = cluster_with_ranges(deleting=True)
    for number, cidr in enumerate(others):
        range_(ranges, f"other-{number}", cidr)
    address(ranges, text)
    assert can_be_deleted(ranges.caches(), own_range(ranges)) is goes


def test_addresses_of_other_cidrs_do_not_count():
    ranges = cluster_with_ranges(deleting=True)
    address(ranges, "10.0.0.7", by="somebody")
    assert can_be_deleted(ranges.caches(), own_range(ranges))


def test_both_address_families_are_checked():
    ranges = cluster_with_ranges("10.0.0.0/24", "fd00::/112", deleting=True)
    range_(ranges, "other", "10.0.0.0/16")
    address(ranges, "fd00::7")
    assert not can_be_deleted(ranges.caches(), own_range(ranges))


@given(st.sets(st.integers(0, 63)), st.sets(st.sampled_from([26, 27, 28, 29])))
def test_no_address_is_left_without_service_cidr(hosts, lengths):
    ranges = cluster_with_ranges("10.0.0.0/26", deleting=True)
    for length in lengths:
        range_(ranges, f"other-{length}", f"10.0.0.0/{length}")
    for host in hosts:
        address(ranges, f"10.0.0.{host}")
    largest = max((2 ** (32 - length) for length in lengths), default=0)
    orphans = {host for host in hosts if 0 < host < 63 and not any(host < 2 ** (32 - n) - 1 for n in lengths)}
    expected = largest == 64 or not orphans
    assert can_be_deleted(ranges.caches(), own_range(ranges)) is expected


def test_refused_write_records_event():
    ranges = cluster_with_ranges()

    def refuse(*_):
        raise Forbidden("no")

    ranges.put = refuse
    _, error = ranges.reconcile(KEY)
    assert error.message == "no"
    assert ranges.events == [
        ("Warning", "KubernetesServiceCIDRError", "The ServiceCIDR Status can not be set to Ready=True")
    ]


def test_changes_map_to_service_cidr_keys():
    ranges = cluster_with_ranges()
    other = range_(ranges, "other", "10.0.0.128/25")
    range_(ranges, "far", "10.1.0.0/24")
    of_cidr, of_address = (watch.keys for watch in SERVICE_CIDR.watches)
    assert [*of_cidr(ranges.caches(), Change(None, other))] == [Key("", "other"), KEY]
    assert [*of_cidr(ranges.caches(), Change(other, other))] == [Key("", "other")]
    held = address(ranges, "10.0.0.200")
    assert {*of_address(ranges.caches(), Change(None, held))} == {KEY, Key("", "other")}
    assert {*of_address(ranges.caches(), Change(held, held))} == set()
    mine = address(ranges, "10.0.0.201", by="me")
    assert {*of_address(ranges.caches(), Change(None, mine))} == set()
