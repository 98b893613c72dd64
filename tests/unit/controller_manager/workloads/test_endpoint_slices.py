"""The changes from present EndpointSlices to desired endpoints, and the Services that a change of a slice concerns."""

from functools import partial

import pytest

from mockube.client.cache.store import Change
from mockube.client.resources import Key
from mockube.controller_manager.workloads.endpoint_slices import (
    SliceOptions,
    by_service,
    keys_of_services,
    ports_of,
    reconcile_slices,
    slice_of,
    sort_ports,
    without_hints,
)
from tests.support.controllers.services_and_pods import service

LABELS = {"kubernetes.io/service-name": "web"}
HTTP = (("http", 80, "TCP", ""),)
DNS = (("dns", 53, "UDP", ""),)


def endpoint(name, **more):
    return {"addresses": [f"10.0.0.{name}"], "targetRef": {"uid": name}, **more}


def endpoints(names):
    return {name: endpoint(name) for name in names}


def present(name, endpoints, ports=HTTP, *, labels=LABELS, owner="uid-web"):
    subject = service()
    subject["metadata"]["uid"] = owner
    body = slice_of(subject, labels, "IPv4", ports, [endpoint(each) for each in endpoints])
    return {**body, "metadata": {**body["metadata"], "name": name}}


def reconciled(slices, desired, maximum=3):
    new_slice = partial(slice_of, service(), LABELS, "IPv4")
    options = SliceOptions(labels=LABELS, new_slice=new_slice, max_endpoints=maximum)
    changes = reconcile_slices(service(), slices, desired, options)
    create = ["".join(map(uid, each["endpoints"])) for each in changes.create]
    update = {each["metadata"]["name"]: "".join(map(uid, each["endpoints"])) for each in changes.update}
    return create, update, [each["metadata"]["name"] for each in changes.delete]


def uid(each):
    return each["targetRef"]["uid"]


@pytest.mark.parametrize(
    ("slices", "desired", "expected"),
    [
        ([], {HTTP: endpoints("abcd")}, (["abc", "d"], {}, [])),
        ([present("s", "ab")], {HTTP: endpoints("ab")}, ([], {}, [])),
        ([present("s", "ab")], {HTTP: endpoints("abc")}, ([], {"s": "abc"}, [])),
        ([present("s", "ab")], {HTTP: endpoints("a")}, ([], {"s": "a"}, [])),
        ([present("s", "ab")], {HTTP: endpoints("ac")}, ([], {"s": "ac"}, [])),
        ([present("s", "abc")], {HTTP: endpoints("abcd")}, (["d"], {}, [])),
        ([present("s", "a"), present("t", "bc")], {HTTP: endpoints("abcd")}, ([], {"t": "bcd"}, [])),
        ([present("s", "a"), present("t", "bc")], {HTTP: endpoints("abcde")}, ([], {"s": "ade"}, [])),
        ([present("s", "ab"), present("t", "cd")], {HTTP: endpoints("abcdef")}, (["ef"], {}, [])),
        ([present("s", "a"), present("t", "bc")], {HTTP: endpoints("a")}, ([], {}, ["t"])),
        ([present("s", "a"), present("t", "bc")], {HTTP: endpoints("acx")}, ([], {"t": "cx"}, [])),
        (
            [present("s", "ab"), present("t", "cde")],
            {HTTP: endpoints("acdxy")},
            ([], {"t": "cdx", "s": "ay"}, []),
        ),
        ([present("s", "a")], {HTTP: endpoints("abcdefg")}, (["bcd", "efg"], {}, [])),
        ([present("s", "ab")], {DNS: endpoints("ab")}, ([], {"s": "ab"}, [])),
        ([present("s", "ab"), present("t", "a", DNS)], {DNS: endpoints("a")}, ([], {}, ["s"])),
        ([present("s", "ab", labels={})], {HTTP: endpoints("ab")}, ([], {"s": "ab"}, [])),
        ([present("s", "ab", owner="former")], {HTTP: endpoints("ab")}, (["ab"], {}, ["s"])),
        ([present("s", "ab")], {}, ([], {"s": ""}, [])),
        ([present("s", "", ())], {}, ([], {}, [])),
        ([present("s", "", ()), present("t", "a")], {}, ([], {}, ["t"])),
        ([present("s", "", (), labels={})], {}, ([], {"s": ""}, [])),
        ([present("s", "", (), owner="former")], {}, ([""], {}, ["s"])),
        ([], {}, ([""], {}, [])),
    ],
)
def test_few_slices_change(slices, desired, expected):
    assert reconciled(slices, desired) == expected


def test_reused_slice_gets_the_ports_of_the_new_one():
    options = SliceOptions(
        labels=LABELS, new_slice=partial(slice_of, service(), LABELS, "IPv4"), max_endpoints=3
    )
    (update,) = reconcile_slices(service(), [present("s", "a")], {DNS: endpoints("a")}, options).update
    assert update["ports"] == [{"name": "dns", "port": 53, "protocol": "UDP"}]


def test_hints_do_not_make_endpoints_differ():
    hinted = present("s", "")
    hinted["endpoints"] = [endpoint("a", hints={"forZones": []})]
    assert reconciled([hinted], {HTTP: endpoints("a")}) == ([], {}, [])
    assert without_hints(endpoint("a", hints={})) == endpoint("a")


def test_endpoint_without_pod_is_known_by_its_address():
    bare = {"addresses": ["10.0.0.7"]}
    slices = [{**present("s", ""), "endpoints": [bare]}]
    options = SliceOptions(
        labels=LABELS, new_slice=partial(slice_of, service(), LABELS, "IPv4"), max_endpoints=3
    )
    changes = reconcile_slices(service(), slices, {HTTP: {"10.0.0.7": bare}}, options)
    assert (changes.create, changes.update, changes.delete) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "prefix"), [("web", "web-"), ("w" * 251, "w" * 251 + "-"), ("w" * 252, "w" * 252)]
)
def test_prefix_of_a_name_has_a_dash_if_that_fits(name, prefix):
    subject = service()
    subject["metadata"]["name"] = name
    assert slice_of(subject, {}, "IPv4", (), ())["metadata"]["generateName"] == prefix


def test_ports_of_a_slice_have_defaults():
    ports = [{"port": 80}, {"name": "x", "port": 1, "protocol": "UDP", "appProtocol": "dns"}, {"name": None}]
    found = ports_of({"ports": ports})
    assert {*found} == {("", 80, "TCP", ""), ("x", 1, "UDP", "dns"), ("", 0, "TCP", "")}
    assert found == sort_ports(tuple(reversed(found)))
    assert ports_of({}) == ports_of({"ports": None}) == ()
    made = slice_of(service(), {}, "IPv4", (("x", 1, "UDP", "dns"),), ())
    assert made["ports"] == [{"name": "x", "port": 1, "protocol": "UDP", "appProtocol": "dns"}]


MANAGED = {"endpointslice.kubernetes.io/managed-by": "us", "kubernetes.io/service-name": "web"}


def labelled(labels):
    return {"metadata": {"name": "s", "namespace": "ns", "labels": labels}}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (MANAGED, [Key("ns", "web")]),
        (MANAGED | {"endpointslice.kubernetes.io/managed-by": "them"}, []),
        (MANAGED | {"kubernetes.io/service-name": ""}, []),
        ({"endpointslice.kubernetes.io/managed-by": "us"}, []),
    ],
)
def test_slice_of_the_manager_concerns_its_service(labels, expected):
    keys = keys_of_services(by_service("us"))
    assert [*keys(None, Change(None, labelled(labels)))] == expected
    assert [*keys(None, Change(labelled(labels), None))] == expected
    assert [*keys(None, Change(labelled(labels), labelled({})))] == expected
