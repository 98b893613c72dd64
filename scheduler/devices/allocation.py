"""Allocate devices for claims by a backtracking search in the order of pools. Pure."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import device_expressions, meta
from mockube.apimachinery.device_expressions import DeviceSelectorError
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.quantity import ZERO
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.device_claims import has_shared_counters, tolerates_taint
from mockube.client.resources import Key

from .pools import Counters, Device, DeviceId, Pool, PoolKey

MAX_DEVICES: Final = 32
"""The maximum number of devices of one claim."""
MAX_STEPS: Final = 20_000
"""The maximum number of steps of a search, which may be exponential; the node counts as infeasible then."""
_MISSING_KEY_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for "
    "optional fields"
)
_PREVENTING_EFFECTS: Final = ("NoSchedule", "NoExecute")


class DeviceAllocationError(ValueError):
    """A claim is invalid, whatever the node."""


class _TooManySteps(Exception):
    pass


class RequestAlternative(Struct, frozen=True, kw_only=True, eq=False):
    """A request, or a subrequest of `firstAvailable`."""

    base: str
    subrequest: str
    spec: ReadOnlyTree
    device_class: ReadOnlyTree

    @property
    def name(self) -> str:
        return f"{self.base}/{self.subrequest}" if self.subrequest else self.base

    @property
    def requests_all_devices(self) -> bool:
        return self.spec.get("allocationMode") == "All"

    @property
    def has_admin_access(self) -> bool:
        return bool(self.spec.get("adminAccess"))


class ChosenDevice(Struct):
    alternative: RequestAlternative
    device: Device


class DeviceAllocator(Struct, eq=False):
    """The search for devices for the claims of one pod on one node; upstream's Allocator."""

    pools: Sequence[Pool]
    claims: Sequence[ReadOnlyTree]
    requests: Sequence[Sequence[Sequence[RequestAlternative]]]
    """The alternatives of each request of each claim."""
    in_use: Container[DeviceId]
    gates: FeatureGates = field(default_factory=FeatureGates)
    results: list[list[ChosenDevice]] = field(default_factory=list)
    _allocated: set[DeviceId] = field(default_factory=set)
    _available_counters: dict[PoolKey, Counters] = field(default_factory=dict)
    _consumed_counters: dict[PoolKey, Counters] = field(default_factory=dict)
    """The shared counters that the devices in `results` consume."""
    _selectable: dict[tuple[int, DeviceId], bool] = field(default_factory=dict)
    _steps: int = 0

    def run(self) -> bool:
        """Search, and return whether devices were found: they are in `results`. Raises `DeviceAllocationError`."""
        self.results = [[] for _ in self.claims]
        for claim, requests in enumerate(self.requests):
            self._check_size(claim, requests)
        try:
            return self._allocate_claim(0)
        except (_TooManySteps, RecursionError):
            return False

    def _check_size(self, claim: int, requests: Sequence[Sequence[RequestAlternative]]) -> None:
        minima = [
            min(self._count(claim, alternative) for alternative in alternatives) for alternatives in requests
        ]
        about, total = f"claim {Key.of(self.claims[claim])}", sum(minima)
        if total <= MAX_DEVICES:
            return
        if self.gates.is_before("1.37"):
            problem = f"number of requested devices {total} exceeds the claim limit of {MAX_DEVICES}"
            raise DeviceAllocationError(f"{about}: {problem}")
        before = 0
        for alternatives, minimum in zip(requests, minima, strict=True):
            if before + minimum > MAX_DEVICES:
                about = f"{about}, request {alternatives[0].base}: adding {minimum} devices"
                problem = f"exceeds the claim limit of {MAX_DEVICES}, with {before} already accounted for"
                raise DeviceAllocationError(f"{about} {problem}")
            before += minimum

    def _count(self, claim: int, alternative: RequestAlternative) -> int:
        """Return the number of devices of a request. Raises `DeviceAllocationError` for all devices if a pool is not usable."""
        if not alternative.requests_all_devices:
            return int(alternative.spec.get("count", 1))
        for pool in self.pools:
            if not pool.is_usable:
                state = "being updated" if not pool.is_complete else "invalid"
                about = f"claim {Key.of(self.claims[claim])}, request {alternative.name}"
                problem = f"asks for all devices, but resource pool {pool.name} is currently {state}"
                raise DeviceAllocationError(f"{about}: {problem}")
        return sum(self._is_selectable(claim, alternative, device) for device in self._all_devices())

    def _allocate_claim(self, claim: int) -> bool:
        return claim == len(self.claims) or self._allocate_request(claim, 0)

    def _allocate_request(self, claim: int, request: int) -> bool:
        if request == len(self.requests[claim]):
            return self._allocate_claim(claim + 1)
        return any(
            self._allocate_alternative(claim, request, alternative)
            for alternative in self.requests[claim][request]
        )

    def _allocate_alternative(self, claim: int, request: int, alternative: RequestAlternative) -> bool:
        count = self._count(claim, alternative)
        if alternative.requests_all_devices and count == 0:
            return False
        return self._allocate_devices(claim, request, alternative, count, 0)

    def _allocate_devices(
        self, claim: int, request: int, alternative: RequestAlternative, remaining: int, start: int
    ) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _TooManySteps
        if remaining == 0:
            return self._allocate_request(claim, request + 1)
        if len(self.results[claim]) + remaining > MAX_DEVICES:
            return False
        devices = self._all_devices()
        for index in range(start, len(devices)):
            device = devices[index]
            if not alternative.requests_all_devices and self._is_unavailable(claim, alternative, device):
                continue
            if not self._is_selectable(claim, alternative, device):
                continue
            if self._try_device(claim, alternative, device):
                if self._allocate_devices(claim, request, alternative, remaining - 1, index + 1):
                    return True
                self._release_last_device(claim)
            if alternative.requests_all_devices:  # without this device they are not all
                return False
        return False

    def _all_devices(self) -> list[Device]:
        return [device for pool in self.pools if pool.is_usable for device in pool.devices]

    def _is_unavailable(self, claim: int, alternative: RequestAlternative, device: Device) -> bool:
        if alternative.has_admin_access:
            return any(result.device.id == device.id for result in self.results[claim])
        return device.id in self.in_use or device.id in self._allocated

    def _is_selectable(self, claim: int, alternative: RequestAlternative, device: Device) -> bool:
        key = (id(alternative), device.id)
        if key not in self._selectable:
            about = f"class {meta.name(alternative.device_class)}"
            of_class = _selectors(alternative.device_class["spec"])
            is_of_class = self._match_selectors(about, of_class, device)
            about = f"claim {Key.of(self.claims[claim])}"
            of_request = _selectors(alternative.spec)
            self._selectable[key] = is_of_class and self._match_selectors(about, of_request, device)
        return self._selectable[key]

    def _match_selectors(self, about: str, expressions: Iterator[str], device: Device) -> bool:
        is_older = self.gates.is_before("1.37")
        name = "" if is_older else f" on device {device.id}"
        for number, expression in enumerate(expressions):
            try:
                if not device_expressions.selects(expression, device.id.driver, device.tree):
                    return False
            except DeviceSelectorError as error:
                hint = _MISSING_KEY_HINT if "no such key:" in str(error) and not is_older else ""
                raise DeviceAllocationError(f"{about}: selector #{number}{name}: {error}{hint}") from error
        return True

    def _try_device(self, claim: int, alternative: RequestAlternative, device: Device) -> bool:
        if self._is_unavailable(claim, alternative, device) or not _tolerates(alternative, device):
            return False
        chosen = ChosenDevice(alternative, device)
        constraints = self.claims[claim]["spec"]["devices"].get("constraints") or ()
        if not all(
            _satisfies_constraint(constraint, chosen, self.results[claim]) for constraint in constraints
        ):
            return False
        if not self._consume_counters(device):
            return False
        self.results[claim].append(chosen)
        self._allocated.add(device.id)
        return True

    def _consume_counters(self, device: Device) -> bool:
        """Consume the shared counters of a device; return False if they do not suffice for the devices of its pool."""
        counters, pool = device.counters, (device.id.driver, device.id.pool)
        if not counters:
            return True
        if not has_shared_counters(self.gates):
            return False
        if pool not in self._available_counters:
            self._available_counters[pool] = self._free_counters(pool)
        consumed = _sum(self._consumed_counters.get(pool, {}), counters)
        for name, available in self._available_counters[pool].items():
            if available < consumed.get(name, ZERO):
                return False
        self._consumed_counters[pool] = consumed
        return True

    def _free_counters(self, key: PoolKey) -> Counters:
        """Return the shared counters that devices in use leave; they are negative if these consume too much."""
        (pool,) = (pool for pool in self.pools if pool.key == key)
        free = dict(pool.counters)
        for device in pool.consumers:
            if device.id in self.in_use:
                free |= {name: free[name] - amount for name, amount in device.counters.items()}
        return free

    def _release_last_device(self, claim: int) -> None:
        device = self.results[claim].pop().device
        pool, counters = (device.id.driver, device.id.pool), device.counters
        if counters:
            consumed = self._consumed_counters[pool]
            self._consumed_counters[pool] = {
                name: amount - counters[name] if name in counters else amount
                for name, amount in consumed.items()
            }
        if not any(result.device.id == device.id for results in self.results for result in results):
            self._allocated.discard(device.id)


def _sum(first: Counters, second: Counters) -> Counters:
    return {**first, **{name: first.get(name, ZERO) + amount for name, amount in second.items()}}


def _selectors(spec: ReadOnlyTree) -> Iterator[str]:
    return (selector["cel"]["expression"] for selector in spec.get("selectors") or ())


def _tolerates(alternative: RequestAlternative, device: Device) -> bool:
    tolerations = alternative.spec.get("tolerations") or ()
    return all(
        any(tolerates_taint(toleration, taint) for toleration in tolerations)
        for taint in device.tree.get("taints") or ()
        if taint.get("effect") in _PREVENTING_EFFECTS
    )


def _satisfies_constraint(
    constraint: ReadOnlyTree, chosen: ChosenDevice, others: Sequence[ChosenDevice]
) -> bool:
    """Return whether the constrained devices have the same value of an attribute, or distinct values."""
    if not _applies_to(constraint, chosen.alternative):
        return True
    attribute = constraint.get("matchAttribute") or constraint.get("distinctAttribute") or ""
    value = _attribute(chosen.device, attribute)
    if value is None:
        return False
    values = [
        _attribute(other.device, attribute) for other in others if _applies_to(constraint, other.alternative)
    ]
    return (
        value not in values
        if "distinctAttribute" in constraint
        else all(other_value == value for other_value in values)
    )


def _applies_to(constraint: ReadOnlyTree, alternative: RequestAlternative) -> bool:
    names = constraint.get("requests") or ()
    return not names or alternative.base in names or alternative.name in names


def _attribute(device: Device, name: str) -> Mapping[str, Any] | None:
    """Return an attribute by its qualified name, or by its identifier if the domain is the driver's name."""
    attributes = device.tree.get("attributes") or {}
    domain, _, identifier = name.rpartition("/")
    attribute: Mapping[str, Any] | None = attributes.get(name)
    if attribute is None and domain == device.id.driver:
        attribute = attributes.get(identifier)
    return attribute


# --- the allocation in a claim's status


def allocation_of(claim: ReadOnlyTree, chosen: Sequence[ChosenDevice], node: str, now: str) -> dict[str, Any]:
    devices: dict[str, Any] = {"results": [_result(chosen_device) for chosen_device in chosen]}
    if config := [*_config(claim, chosen)]:
        devices["config"] = config
    selector = _node_selector(chosen, node)
    return {
        "devices": devices,
        **({"nodeSelector": selector} if selector else {}),
        "allocationTimestamp": now,
    }


def _result(chosen: ChosenDevice) -> dict[str, Any]:
    spec, device_id = chosen.alternative.spec, chosen.device.id
    result = {
        "request": chosen.alternative.name,
        "driver": device_id.driver,
        "pool": device_id.pool,
        "device": device_id.device,
    }
    more = {"adminAccess": spec.get("adminAccess"), "tolerations": spec.get("tolerations")}
    return {**result, **{name: value for name, value in more.items() if value}}


def _config(claim: ReadOnlyTree, chosen: Sequence[ChosenDevice]) -> Iterator[dict[str, Any]]:
    """Yield the configuration of device classes, each once for all its requests, then that of the claim."""
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


def _node_selector(chosen: Sequence[ChosenDevice], node: str) -> dict[str, Any] | None:
    term: dict[str, list[Any]] = {}
    for chosen_device in chosen:
        node_selection = chosen_device.device.node_selection
        if node_selection.get("nodeName"):
            fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
            return {"nodeSelectorTerms": [{"matchFields": fields}]}
        for selector_term in (node_selection.get("nodeSelector") or {}).get("nodeSelectorTerms") or ():
            for name in ("matchFields", "matchExpressions"):
                requirements = term.setdefault(name, [])
                requirements += [
                    requirement
                    for requirement in selector_term.get(name) or ()
                    if requirement not in requirements
                ]
    filled = {name: requirements for name, requirements in term.items() if requirements}
    return {"nodeSelectorTerms": [filled]} if filled else None
