"""The writes of the claims of a pod that gets devices, and what is taken back if the pod is not bound."""

import pytest

from mockube.apimachinery.status import Conflict, NotFound, ServiceUnavailable
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.scheduler import device_binder
from mockube.scheduler.binder import BindingFailure
from mockube.scheduler.device_binder import DeviceBinder
from mockube.scheduler.devices.claims import DeviceReservation

POD = PodView.of({"metadata": {"name": "web", "namespace": "default", "uid": "web"}, "spec": {}})
ALLOCATION = {"devices": {"results": [{"driver": "d", "pool": "p", "device": "g0"}]}}
PROTECTED = ["resource.kubernetes.io/delete-protection"]
FOR_POD = {"resource": "pods", "name": "web", "uid": "web"}
FOR_OTHER = {"resource": "pods", "name": "other", "uid": "other"}
PREFIX = 'running PreBind plugin "DynamicResources": '


def claim(name="gpu", *, finalizers=(), status=(), **metadata):
    own = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {
        "metadata": {**own, "finalizers": [*finalizers], **metadata},
        "spec": {},
        "status": dict(status),
    }


RESERVED = claim(finalizers=PROTECTED, status={"allocation": ALLOCATION, "reservedFor": [FOR_POD]})


class ClaimServer:
    """A client that stores what is written. The errors of `fail` are raised by the next requests of a verb, one each."""

    def __init__(self, *claims):
        self.claims = {Key.of(one): one for one in claims}
        self.requests = []
        self._errors = []

    def fail(self, verb, *errors):
        self._errors += [(verb, error) for error in errors]

    def _note(self, verb, what, subresource=""):
        request = " ".join(filter(None, (verb, what.plural, subresource)))
        self.requests.append(request)
        for number, (failing, error) in enumerate(self._errors):
            if failing == request:
                del self._errors[number]
                raise error

    async def get(self, resource, key):
        self._note("get", resource)
        return self.claims[key]

    async def create(self, resource, body):
        self._note("create", resource)
        metadata = {**body["metadata"], "name": "made", "uid": "uid-made", "resourceVersion": "1"}
        return self._store({**body, "metadata": metadata})

    async def update(self, resource, body, subresource=""):
        self._note("update", resource, subresource)
        return self._store(body)

    async def patch(self, resource, key, patch, *, kind, subresource):
        assert kind == "strategic"
        self._note("patch", resource, subresource)
        self.patched = key, patch

    async def delete(self, resource, key):
        self._note("delete", resource)
        del self.claims[key]

    def _store(self, body):
        self.claims[Key.of(body)] = body
        return body


class FakeState:
    """The state of devices, which records what is assumed and forgotten."""

    def __init__(self):
        self.assumed, self.forgotten = [], []

    def assume(self, allocations):
        self.assumed += allocations

    def forget(self, uids):
        self.forgotten += uids


class Binding:
    def __init__(self, *claims, allocated=("uid-gpu",), extended=None, mappings=()):
        self.server, self.state = ClaimServer(*claims), FakeState()
        allocations = dict.fromkeys(allocated, ALLOCATION)
        reservation = DeviceReservation(claims, allocations, extended, mappings)
        self.binder = DeviceBinder(self.server, self.state, POD, reservation)

    async def failure(self):
        with pytest.raises(BindingFailure) as failure:
            await self.binder.bind()
        assert str(failure.value).startswith(PREFIX)
        return str(failure.value).removeprefix(PREFIX)

    def stored(self, name="gpu"):
        return self.server.claims[Key("default", name)]


UPDATES = ["update resourceclaims", "update resourceclaims status"]


async def test_allocation_is_written_with_the_reservation_after_the_finalizer():
    binding = Binding(claim())
    await binding.binder.bind()
    binding.binder.finish()
    assert binding.server.requests == UPDATES
    assert binding.stored() == RESERVED
    assert binding.state.forgotten == []


async def test_finalizer_that_is_there_is_not_written_again():
    binding = Binding(claim(finalizers=PROTECTED))
    await binding.binder.bind()
    assert binding.server.requests == UPDATES[1:]


async def test_allocated_claim_is_reserved_for_one_more_pod():
    binding = Binding(claim(status={"allocation": ALLOCATION, "reservedFor": [FOR_OTHER]}), allocated=())
    await binding.binder.bind()
    assert binding.server.requests == UPDATES[1:]
    assert binding.stored()["status"]["reservedFor"] == [FOR_OTHER, FOR_POD]


async def test_claim_that_is_reserved_is_not_written():
    binding = Binding(RESERVED, allocated=())
    await binding.binder.bind()
    assert binding.server.requests == []


GOING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("latest", "allocated", "problem"),
    [
        (claim(**GOING), ["uid-gpu"], "claim default/gpu got deleted in the meantime"),
        (claim(**GOING), [], "claim default/gpu got deleted in the meantime"),
        (
            claim(status={"allocation": {}}),
            ["uid-gpu"],
            "claim default/gpu got allocated elsewhere in the meantime",
        ),
    ],
)
async def test_claim_that_changed_meanwhile_is_not_taken(latest, allocated, problem):
    binding = Binding(latest, allocated=allocated)
    assert await binding.failure() == problem
    binding.binder.finish()
    assert (binding.server.requests, binding.state.forgotten) == ([], allocated)


async def test_conflict_is_tried_again_with_the_latest_claim():
    binding = Binding(claim())
    binding.server.claims[Key("default", "gpu")] = claim(labels={"latest": ""})
    binding.server.fail("update resourceclaims", Conflict("old"))
    binding.server.fail("update resourceclaims status", Conflict("old"))
    await binding.binder.bind()
    get = "get resourceclaims"
    assert binding.server.requests == [UPDATES[0], get, *UPDATES, get, UPDATES[1]]
    assert binding.stored()["metadata"]["labels"] == {"latest": ""}


@pytest.mark.parametrize(
    ("allocated", "action"),
    [
        (["uid-gpu"], "add allocation and reservation to claim"),
        ([], "add reservation to claim"),
    ],
)
async def test_fifth_conflict_is_a_failure(allocated, action):
    of_claim = {} if allocated else {"allocation": ALLOCATION}
    binding = Binding(claim(finalizers=PROTECTED, status=of_claim), allocated=allocated)
    binding.server.fail(UPDATES[1], *[Conflict("old")] * 5)
    assert await binding.failure() == f"{action} default/gpu: old"
    assert binding.server.requests.count(UPDATES[1]) == 5


@pytest.mark.parametrize("error", [ServiceUnavailable("down"), NoResponse("down")])
@pytest.mark.parametrize(
    ("request_name", "action"),
    [
        (UPDATES[0], "add finalizer to claim"),
        (UPDATES[1], "add allocation and reservation to claim"),
    ],
)
async def test_failed_write_is_named(error, request_name, action):
    binding = Binding(claim())
    binding.server.fail(request_name, error)
    assert await binding.failure() == f"{action} default/gpu: down"


EXTENDED = {
    "metadata": {"generateName": "web-", "name": "special", "uid": "special", "namespace": "default"},
    "spec": {"devices": {}},
}
MAPPING = {"containerName": "c", "requestName": "r", "resourceName": "e.x/gpu"}
CREATES = ["create resourceclaims", *UPDATES, "patch pods status"]


def extended_binding(*mappings):
    return Binding(allocated=["special"], extended=EXTENDED, mappings=mappings)


async def test_claim_for_extended_resources_is_created_and_named_in_the_pod():
    binding = extended_binding(MAPPING)
    await binding.binder.bind()
    binding.binder.finish()
    assert binding.server.requests == CREATES
    assert binding.stored("made")["status"]["reservedFor"] == [FOR_POD]
    status = {"resourceClaimName": "made", "requestMappings": [MAPPING]}
    assert binding.server.patched == (POD.key, {"status": {"extendedResourceClaimStatus": status}})
    assert (binding.state.assumed, binding.state.forgotten) == (["uid-made"], ["special"])


@pytest.mark.parametrize(
    ("request_name", "problem"),
    [
        (CREATES[0], "create claim for extended resources default/: down"),
        (CREATES[2], "add allocation and reservation to claim default/made: down"),
        (CREATES[3], "update pod default/web ExtendedResourceClaimStatus: down"),
    ],
)
async def test_failure_of_a_claim_for_extended_resources_is_named(request_name, problem):
    binding = extended_binding(MAPPING)
    binding.server.fail(request_name, ServiceUnavailable("down"))
    assert await binding.failure() == problem


async def test_claim_that_no_container_uses_is_a_failure():
    binding = extended_binding()
    problem = "nil or empty request mappings, no update of pod default/web ExtendedResourceClaimStatus"
    assert await binding.failure() == problem
    assert binding.server.requests == CREATES[:3]


# --- what is taken back


async def test_only_reservations_of_the_pod_are_withdrawn():
    others = claim("others", status={"allocation": ALLOCATION, "reservedFor": [FOR_OTHER]})
    without_devices = claim("new", status={"reservedFor": [FOR_POD]})
    binding = Binding(RESERVED, others, without_devices, allocated=())
    await binding.binder.withdraw()
    assert binding.server.requests == ["patch resourceclaims status"]
    consumers = [{"$patch": "delete", "uid": "web"}]
    patch = {"metadata": {"uid": "uid-gpu"}, "status": {"reservedFor": consumers}}
    assert binding.server.patched == (Key("default", "gpu"), patch)


async def test_reservation_that_was_written_is_withdrawn():
    binding = Binding(claim())
    await binding.binder.bind()
    binding.server.requests.clear()
    await binding.binder.withdraw()
    assert binding.server.requests == ["patch resourceclaims status"]


async def test_created_claim_is_deleted_without_its_finalizer():
    binding = extended_binding()
    await binding.failure()
    binding.server.requests.clear()
    binding.server.fail(UPDATES[0], Conflict("old"))
    await binding.binder.withdraw()
    assert binding.server.requests == [UPDATES[0], "get resourceclaims", UPDATES[0], "delete resourceclaims"]
    assert binding.server.claims == {}


async def test_claim_is_deleted_with_its_finalizer_if_that_is_still_there_after_five_conflicts():
    server = ClaimServer(RESERVED)
    server.fail(UPDATES[0], *[Conflict("old")] * 5)
    await device_binder.delete_claim(server, RESERVED)
    assert server.requests == [*[UPDATES[0], "get resourceclaims"] * 5, "delete resourceclaims"]


@pytest.mark.parametrize(
    ("error", "is_reported"), [(NotFound("gone"), False), (ServiceUnavailable("down"), True)]
)
async def test_failure_to_take_back_is_only_logged(error, is_reported, caplog):
    binding = Binding(RESERVED, allocated=())
    binding.server.fail("patch resourceclaims status", error)
    await binding.binder.withdraw()
    assert ("unreserving default/gpu: down" in caplog.text) is is_reported


async def test_deallocated_claim_keeps_only_other_fields_of_its_status():
    server = ClaimServer(RESERVED)
    own = {**RESERVED, "status": {**RESERVED["status"], "devices": [], "conditions": []}}
    await device_binder.deallocate_claim(server, own)
    assert server.requests == ["update resourceclaims status"]
    assert server.claims[Key("default", "gpu")]["status"] == {"conditions": []}
