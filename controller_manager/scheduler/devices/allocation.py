"""Find devices for claims by trying all ways, in the order of pools, until one holds. Pure."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import device_expressions, meta
from mockube.apimachinery.device_expressions import SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.scheduler.devices.pools import Device, DeviceId, Pool
from mockube.controller_manager.workloads.device_claims import tolerates_taint

MAX_DEVICES: Final = 32
"""Of one claim."""
MAX_STEPS: Final = 20_000
"""After which a node counts as one that has no devices for the claims: the ways are as many as people care to write."""
_PREVENTING: Final = ("NoSchedule", "NoExecute")


class AllocationError(ValueError):
    """What is wrong with a claim, wherever its pod might run."""


class _TooManySteps(Exception):
    pass


class Alternative(Struct, frozen=True, kw_only=True, eq=False):
    """A request, or one of those of which the first available is taken."""

    base: str
    sub: str
    spec: ReadOnlyTree
    device_class: ReadOnlyTree

    @property
    def name(self) -> str:
        return f"{self.base}/{self.sub}" if self.sub else self.base

    @property
    def requests_all_devices(self) -> bool:
        return self.spec.get("allocationMode") == "All"

    @property
    def has_admin_access(self) -> bool:
        return bool(self.spec.get("adminAccess"))


class _ChosenDevice(Struct):
    alternative: Alternative
    device: Device


class Search(Struct, eq=False):
    """For the claims of one pod on one node."""

    pools: Sequence[Pool]
    claims: Sequence[ReadOnlyTree]
    requests: Sequence[Sequence[Sequence[Alternative]]]
    """Of each claim, of each of its requests, the alternatives."""
    in_use: Container[DeviceId]
    results: list[list[_ChosenDevice]] = field(default_factory=list)
    _allocated: set[DeviceId] = field(default_factory=set)
    _selectable: dict[tuple[int, DeviceId], bool] = field(default_factory=dict)
    _steps: int = 0

    def run(self) -> bool:
        """Whether there is a way; `results` has it then. Raises `AllocationError`."""
        self.results = [[] for _ in self.claims]
        for claim, requests in enumerate(self.requests):
            self._check_size(claim, requests)
        try:
            return self._claim(0)
        except (_TooManySteps, RecursionError):
            return False

    def _check_size(self, claim: int, requests: Sequence[Sequence[Alternative]]) -> None:
        minimum = sum(
            min(self._count(claim, alternative) for alternative in alternatives) for alternatives in requests
        )
        if minimum > MAX_DEVICES:
            problem = f"number of requested devices {minimum} exceeds the claim limit of {MAX_DEVICES}"
            raise AllocationError(f"claim {Key.of(self.claims[claim])}: {problem}")

    def _count(self, claim: int, alternative: Alternative) -> int:
        """How many devices it takes. What all are is known only where every pool is whole."""
        if not alternative.requests_all_devices:
            return int(alternative.spec.get("count", 1))
        for pool in self.pools:
            if not pool.is_usable:
                state = "being updated" if not pool.is_complete else "invalid"
                about = f"claim {Key.of(self.claims[claim])}, request {alternative.name}"
                problem = f"asks for all devices, but resource pool {pool.name} is currently {state}"
                raise AllocationError(f"{about}: {problem}")
        return sum(self._is_selectable(claim, alternative, device) for device in self._all_devices())

    def _claim(self, claim: int) -> bool:
        return claim == len(self.claims) or self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        if request == len(self.requests[claim]):
            return self._claim(claim + 1)
        return any(
            self._alternative(claim, request, alternative) for alternative in self.requests[claim][request]
        )

    def _alternative(self, claim: int, request: int, alternative: Alternative) -> bool:
        count = self._count(claim, alternative)
        if alternative.requests_all_devices and count == 0:
            return False
        return self._devices(claim, request, alternative, count, 0)

    def _devices(
        self, claim: int, request: int, alternative: Alternative, remaining: int, start: int
    ) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _TooManySteps
        if remaining == 0:
            return self._request(claim, request + 1)
        if len(self.results[claim]) + remaining > MAX_DEVICES:
            return False
        devices = self._all_devices()
        for place in range(start, len(devices)):
            device = devices[place]
            if not alternative.requests_all_devices and self._is_taken(claim, alternative, device):
                continue
            if not self._is_selectable(claim, alternative, device):
                continue
            if self._take(claim, alternative, device):
                if self._devices(claim, request, alternative, remaining - 1, place + 1):
                    return True
                self._give_back(claim)
            if alternative.requests_all_devices:
                return False
        return False

    def _all_devices(self) -> list[Device]:
        return [device for pool in self.pools if pool.is_usable for device in pool.devices]

    def _is_taken(self, claim: int, alternative: Alternative, device: Device) -> bool:
        if alternative.has_admin_access:
            return any(result.device.id == device.id for result in self.results[claim])
        return device.id in self.in_use or device.id in self._allocated

    def _is_selectable(self, claim: int, alternative: Alternative, device: Device) -> bool:
        key = (id(alternative), device.id)
        if key not in self._selectable:
            driver = device.id.driver
            about = f"class {meta.name(alternative.device_class)}"
            of_class = _selectors(alternative.device_class["spec"])
            is_of_class = _are_held(about, of_class, driver, device.tree)
            about = f"claim {Key.of(self.claims[claim])}"
            of_request = _selectors(alternative.spec)
            self._selectable[key] = is_of_class and _are_held(about, of_request, driver, device.tree)
        return self._selectable[key]

    def _take(self, claim: int, alternative: Alternative, device: Device) -> bool:
        if self._is_taken(claim, alternative, device) or not _tolerates(alternative, device):
            return False
        chosen = _ChosenDevice(alternative, device)
        constraints = self.claims[claim]["spec"]["devices"].get("constraints") or ()
        if not all(_holds(constraint, chosen, self.results[claim]) for constraint in constraints):
            return False
        self.results[claim].append(chosen)
        self._allocated.add(device.id)
        return True

    def _give_back(self, claim: int) -> None:
        device = self.results[claim].pop().device
        if not any(result.device.id == device.id for results in self.results for result in results):
            self._allocated.discard(device.id)


def _selectors(spec: ReadOnlyTree) -> Iterator[str]:
    return (selector["cel"]["expression"] for selector in spec.get("selectors") or ())


def _are_held(about: str, expressions: Iterator[str], driver: str, device: ReadOnlyTree) -> bool:
    for number, expression in enumerate(expressions):
        try:
            if not device_expressions.selects(expression, driver, device):
                return False
        except SelectorError as error:
            raise AllocationError(f"{about}: selector #{number}: {error}") from error
    return True


def _tolerates(alternative: Alternative, device: Device) -> bool:
    tolerations = alternative.spec.get("tolerations") or ()
    return all(
        any(tolerates_taint(toleration, taint) for toleration in tolerations)
        for taint in device.tree.get("taints") or ()
        if taint.get("effect") in _PREVENTING
    )


def _holds(constraint: ReadOnlyTree, chosen: _ChosenDevice, others: Sequence[_ChosenDevice]) -> bool:
    """Whether the constrained devices have the same value of an attribute, or distinct ones."""
    if not _is_about(constraint, chosen.alternative):
        return True
    attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or ""
    value = _attribute(chosen.device, attribute)
    if value is None:
        return False
    values = [
        _attribute(other.device, attribute) for other in others if _is_about(constraint, other.alternative)
    ]
    return (
        value not in values
        if "distinctAttribute" in constraint
        else all(other_value == value for other_value in values)
    )


def _is_about(constraint: ReadOnlyTree, alternative: Alternative) -> bool:
    names = constraint.get("requests") or ()
    return not names or alternative.base in names or alternative.name in names


def _attribute(device: Device, name: str) -> Mapping[str, Any] | None:
    """By its whole name, or by the part behind the domain where that is the driver's."""
    attributes = device.tree.get("attributes") or {}
    domain, _, identifier = name.rpartition("/")
    attribute: Mapping[str, Any] | None = attributes.get(name)
    if attribute is None and domain == device.id.driver:
        attribute = attributes.get(identifier)
    return attribute


# --- the result, as a claim's status has it


def allocation_of(search: Search, claim: int, node: str, now: str) -> dict[str, Any]:
    chosen = search.results[claim]
    devices: dict[str, Any] = {"results": [_result(chosen_device) for chosen_device in chosen]}
    if config := [*_config(search.claims[claim], chosen)]:
        devices["config"] = config
    selector = _node_selector(chosen, node)
    return {
        "devices": devices,
        **({"nodeSelector": selector} if selector else {}),
        "allocationTimestamp": now,
    }


def _result(chosen: _ChosenDevice) -> dict[str, Any]:
    spec, device_id = chosen.alternative.spec, chosen.device.id
    result = {
        "request": chosen.alternative.name,
        "driver": device_id.driver,
        "pool": device_id.pool,
        "device": device_id.device,
    }
    more = {"adminAccess": spec.get("adminAccess"), "tolerations": spec.get("tolerations")}
    return {**result, **{name: value for name, value in more.items() if value}}


def _config(claim: ReadOnlyTree, chosen: Sequence[_ChosenDevice]) -> Iterator[dict[str, Any]]:
    """The classes' first, each once for all of its requests."""
    used = {id(chosen_device.alternative): chosen_device.alternative for chosen_device in chosen}.values()
    classes = {meta.name(alternative.device_class): alternative.device_class for alternative in used}
    for name, device_class in classes.items():
        requests = [alternative.name for alternative in used if meta.name(alternative.device_class) == name]
        for config in device_class["spec"].get("config") or ():
            yield {"source": "FromClass", "requests": requests, **config}
    names = {name for alternative in used for name in (alternative.base, alternative.name)}
    for config in claim["spec"]["devices"].get("config") or ():
        if not config.get("requests") or names & {*config["requests"]}:
            yield {"source": "FromClaim", **config}


def _node_selector(chosen: Sequence[_ChosenDevice], node: str) -> dict[str, Any] | None:
    term: dict[str, list[Any]] = {}
    for chosen_device in chosen:
        place = chosen_device.device.place
        if place.get("nodeName"):
            fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
            return {"nodeSelectorTerms": [{"matchFields": fields}]}
        for selector_term in (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            for name in ("matchFields", "matchExpressions"):
                requirements = term.setdefault(name, [])
                requirements += [
                    requirement
                    for requirement in selector_term.get(name) or ()
                    if requirement not in requirements
                ]
    filled = {name: requirements for name, requirements in term.items() if requirements}
    return {"nodeSelectorTerms": [filled]} if filled else None
