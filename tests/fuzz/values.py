"""Objects made from schemas: well-formed, with an occasional invalid value."""

from functools import cache

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from tests.fuzz import texts
from tests.support.hostile import hostile_bodies

NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    80,
    100,
    1000,
    30000,
    65535,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**53,
    2**63 - 1,
    -(2**63),
)
TEXTS = (
    "a", "b", "app", "", "default", "example.com/a", "a.b.c", "TCP", "UDP", "Always", "Never", "None", "ClusterIP", "NodePort", "ExternalName", "In", "Exists",
    "NotIn", "DoesNotExist", "Equal", "NoSchedule", "NoExecute", "RollingUpdate", "Recreate", "Delete", "Retain", "ReadWriteOnce", "Filesystem", "Block",
    "kubernetes.io/hostname", "v1", "apps/v1", "Pod", "metadata.name", "status.podIP", "limits.cpu", "requests.memory", "cpu", "memory", "hugepages-2Mi", "pods",
    "10.0.0.1", "::1", "10.0.0.0/8", "IPv4", "IPv6", "SingleStack", "PreferDualStack", "0 0 * * *", "/var/run", "/", "../a", "image:latest", "1", "25%", "http",
    "Running", "Pending", "True", "False", "Unknown", "Ready", "ScheduleAnyway", "DoNotSchedule", "Utilization", "Resource", "50m", "1Gi", "$(A)", "x-y_z.0",
    "*", "get", "system:masters", "User", "Group", "ServiceAccount", "rbac.authorization.k8s.io", "Foreground", "Opaque", "kubernetes.io/tls", "Local", "Cluster",
    "Indexed", "NonIndexed", "OrderedReady", "Parallel", "OnDelete", "File", "RuntimeDefault", "Localhost", "Unconfined", "ALL", "NET_ADMIN", "Job", "Ignore", "Fail",
)  # fmt: skip
_NAMES = {
    "name": ("a", "b", "c", "a-b", "A_b"),
    "namespace": ("default", ""),
    "uid": ("u", ""),
    "kind": ("Pod", "Deployment", "x"),
}
_GRAMMARS = (
    texts.NAMES,
    texts.QUANTITIES,
    texts.SCHEDULES,
    texts.ADDRESSES,
    texts.LABEL_SELECTORS,
    texts.PATHS,
    texts.TIMESTAMPS,
)


def object_of(random, api_version, kind, *, odd=0.03):
    """Return an object of a built-in kind; `odd` is how often a value is unexpected."""
    tree = _struct(builtin.load().kind(api_version, kind), random, _Budget(random.choice((10, 30, 80)), odd))
    metadata = tree.get("metadata")
    if isinstance(metadata, dict):
        metadata["name"] = "a" if random.random() > odd else text(random, "name", odd)
        for name in (
            "namespace",
            "resourceVersion",
            "uid",
            "deletionTimestamp",
            "generateName",
            "managedFields",
            "finalizers",
        ):
            if random.random() > odd:
                metadata.pop(name, None)
    return {"apiVersion": api_version, "kind": kind} | tree


class _Budget:
    """How many more fields may be filled in."""

    def __init__(self, fields, odd):
        self.fields = fields
        self.odd = odd


@cache
def _fields(struct):
    return tuple(struct.fields.values())


def _struct(of, random, budget, depth=0):
    tree = {}
    fields = [field for field in _fields(of) if field.name not in ("apiVersion", "kind") or depth]
    for field in fields:
        wanted = (
            field.required or field.name in ("metadata", "spec") or random.random() < 0.35 / (1 + depth / 4)
        )
        if wanted and budget.fields > 0 and depth < 12:
            budget.fields -= 1
            tree[field.name] = value(field.type, random, budget, depth + 1, field.name)
    return tree


def value(of, random, budget, depth, name=""):
    """Return a value of a type, or something odd."""
    if random.random() < budget.odd:
        return hostile_bodies.odd_value(random)
    match of.shape:
        case Shape.STRUCT:
            return _struct(of, random, budget, depth)
        case Shape.MAP:
            return {
                text(random, "key", 0): value(of.items, random, budget, depth + 1, name)
                for _ in range(random.choice((0, 1, 2)))
            }
        case Shape.LIST:
            count = random.choice((0, 1, 1, 2, 3))
            return [value(of.items, random, budget, depth + 1, name) for _ in range(count)]
        case _:
            return _scalar(of.shape, random, name, budget.odd)


_SCALARS = {
    Shape.INTEGER: NUMBERS,
    Shape.NUMBER: (*NUMBERS, 0.5, -1.5, 1e300),
    Shape.BOOLEAN: (True, False),
    Shape.INT_OR_STRING: ("25%", "http", "a", 0, 1, -1, 80, "100%", "101%", "", 2**31),
    Shape.TIME: ("2030-01-02T03:04:05Z", None, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    Shape.MICRO_TIME: ("2030-01-02T03:04:05.000006Z", None, "0001-01-01T00:00:00.000000Z"),
    Shape.BYTES: ("", "AAE=", "AA", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="),
    Shape.QUANTITY: ("1", "50m", "1Gi", "0", "-1", "1e3", "100", 5, 0.5, "1n"),
}


def _scalar(shape, random, name, odd):
    if shape is Shape.STRING:
        return text(random, name, odd)
    if shape is Shape.QUANTITY and random.random() < odd * 3:
        return texts.join_tokens(random, texts.QUANTITIES, maximum=3)
    return random.choice(_SCALARS[shape]) if shape in _SCALARS else hostile_bodies.odd_value(random)


def text(random, name, odd):
    """Return a text, often one that is valid in a field of the name."""
    if name in _NAMES and random.random() < 0.8:
        return random.choice(_NAMES[name])
    if random.random() < odd * 3:
        return texts.join_tokens(random, random.choice(_GRAMMARS), maximum=4)
    return random.choice(TEXTS)
