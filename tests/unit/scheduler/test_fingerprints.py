"""Which nodes have devices that are alike to claims."""

import pytest

from mockube.scheduler.devices.allocation import RequestAlternative
from mockube.scheduler.devices.fingerprints import DeviceFingerprints, attribute_names
from mockube.scheduler.devices.pools import DeviceId

NAMES = frozenset({"model"})


def alternative(expression, **spec):
    selectors = {"selectors": [{"cel": {"expression": expression}}]}
    device_class = {"metadata": {"name": "any"}, "spec": selectors if expression else {}}
    return RequestAlternative(base="r", subrequest="", spec=spec, device_class=device_class)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param("", set(), id="no selector"),
        pytest.param('device.driver == "gpu"', set(), id="driver"),
        pytest.param('device.attributes["gpu"].model == "a"', {"model"}, id="field"),
        pytest.param('device.attributes["gpu"].?model.orValue("") == "a"', {"model"}, id="optional field"),
        pytest.param("device.attributes['gpu']['model'] == 'a'", {"model"}, id="key"),
        pytest.param('device.attributes["gpu"][?"model"].hasValue()', {"model"}, id="optional key"),
        pytest.param('"model" in device.attributes["gpu"]', {"model"}, id="contained name"),
        pytest.param(
            'device.driver == "gpu" && has(device.capacity["gpu"].memory) && device.capacity["gpu"].memory.compareTo(quantity("1Gi")) > 0',
            {"memory"},
            id="capacity",
        ),
        pytest.param('device.attributes["gpu"] == {}', None, id="whole map"),
        pytest.param('device.attributes["gpu"].exists(name, name == "x")', None, id="macro over a map"),
        pytest.param('"gpu" in device.attributes', None, id="domain"),
        pytest.param('"a" in device.attributes["gpu"].models', {"models"}, id="value of an attribute"),
        pytest.param('cel.bind(one, device, one.driver == "gpu")', None, id="variable"),
        pytest.param('device.attributes["g" + "pu"].model == "a"', None, id="computed domain"),
    ],
)
def test_names_of_attributes_that_a_selector_reads(expression, names):
    assert attribute_names([alternative(expression)], []) == names


def test_names_of_constraints_and_of_requested_capacities():
    constraints = [{"matchAttribute": "gpu/numa"}, {"distinctAttribute": "gpu/slot"}]
    claim = {"spec": {"devices": {"constraints": constraints}}}
    request = alternative("", capacity={"requests": {"gpu/memory": "1Gi"}})
    assert attribute_names([request], [claim]) == {"numa", "slot", "memory"}


def slices_of(node, *models, **spec):
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": model}, "uuid": {"string": f"{node}-{number}"}},
        }
        for number, model in enumerate(models)
    ]
    pool = {"name": f"pool-of-{node}", "generation": 1, "resourceSliceCount": 1}
    return [
        {
            "metadata": {"name": node},
            "spec": {"driver": "gpu", "pool": pool, "nodeName": node, "devices": devices, **spec},
        }
    ]


def are_alike(first, second, names=NAMES, in_use=()):
    fingerprints = DeviceFingerprints()
    one, other = (
        fingerprints.of(name, slices, names, in_use) for name, slices in (("a", first), ("b", second))
    )
    return one == other


def test_nodes_with_other_names_and_uuids_are_alike():
    assert are_alike(slices_of("a", "x", "y"), slices_of("b", "x", "y"))
    assert are_alike([], [])


@pytest.mark.parametrize(
    ("second", "more"),
    [
        pytest.param(slices_of("b", "x", "z"), {}, id="other model"),
        pytest.param(slices_of("b", "y", "x"), {}, id="other order"),
        pytest.param(slices_of("b", "x"), {}, id="fewer devices"),
        pytest.param([], {}, id="no devices"),
        pytest.param(slices_of("b", "x", "y", sharedCounters=[{"name": "c"}]), {}, id="counters"),
        pytest.param(
            slices_of("b", "x", "y"), {"in_use": [DeviceId("gpu", "pool-of-a", "gpu-0")]}, id="used"
        ),
        pytest.param(slices_of("b", "x", "y"), {"names": None}, id="all attributes"),
        pytest.param(
            slices_of("b", "x", "y", pool={"name": "b", "generation": 1, "resourceSliceCount": 2}),
            {},
            id="incomplete",
        ),
    ],
)
def test_nodes_differ_by_what_claims_may_read(second, more):
    assert not are_alike(slices_of("a", "x", "y"), second, **more)


def test_incomplete_pools_are_never_alike():
    pool = {"name": "one", "generation": 1, "resourceSliceCount": 2}
    assert not are_alike(slices_of("a", "x", pool=pool), slices_of("b", "x", pool=pool))


def test_changed_slices_change_the_fingerprint():
    fingerprints = DeviceFingerprints()
    before = fingerprints.of("a", slices_of("a", "x"), NAMES, ())
    assert fingerprints.of("a", slices_of("a", "y"), NAMES, ()) != before
    assert fingerprints.of("a", slices_of("a", "x"), NAMES, ()) == before
    more = slices_of("a", "x")
    few = fingerprints.of("a", more, NAMES, ())
    assert fingerprints.of("a", [*more, *slices_of("c", "x")], NAMES, ()) != few


def test_fingerprint_of_the_same_slices_is_not_computed_again():
    fingerprints, slices = DeviceFingerprints(), slices_of("a", "x")
    text, _ = fingerprints.of("a", slices, NAMES, ())
    slices[0]["spec"]["devices"] = []
    assert fingerprints.of("a", slices, NAMES, ())[0] == text


def test_devices_of_several_slices_are_in_the_order_of_their_names():
    """The search takes them in this order."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    one, other = (
        {**each, "metadata": {"name": name}}
        for name, (each,) in zip(
            "12", (slices_of("a", "x", pool=pool), slices_of("a", "y", pool=pool)), strict=True
        )
    )
    assert are_alike([one, other], [other, one])
    renamed = [{**one, "metadata": {"name": "3"}}, other]
    assert not are_alike([one, other], renamed)


def test_generations_of_a_pool_are_never_alike():
    def of(node):
        pools = [{"name": "p", "generation": number, "resourceSliceCount": 2} for number in (1, 2)]
        return [each for pool in pools for each in slices_of(node, "x", pool=pool)]

    assert not are_alike(of("a"), of("b"))


def test_names_of_requests_count_beside_those_of_classes():
    own = {"selectors": [{"cel": {"expression": 'device.attributes["gpu"].uuid == "u"'}}]}
    request = alternative('device.attributes["gpu"].model == "a"', **own)
    assert attribute_names([request], []) == {"model", "uuid"}
    odd = {"selectors": [{"cel": {"expression": "device == 1"}}]}
    assert attribute_names([alternative("", **odd)], []) is None


def test_few_sets_of_names_are_kept():
    fingerprints = DeviceFingerprints()
    for number in range(40):
        fingerprints.of("a", slices_of("a", "x"), frozenset({str(number)}), ())
    assert len(fingerprints._by_names) <= 16
