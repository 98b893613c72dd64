"""Small handwritten types for type-generic code, with everything that merging distinguishes."""

from mockube.apimachinery.schema.model import Field, SchemaType, Shape

TEXT = SchemaType(shape=Shape.STRING, go="string")
NUMBER = SchemaType(shape=Shape.INTEGER, go="int32")
FLAG = SchemaType(shape=Shape.BOOLEAN, go="bool")
EITHER = SchemaType(shape=Shape.INT_OR_STRING, go="intstr.IntOrString")
FREE = SchemaType(shape=Shape.ANY, go="v1.JSON")
RAW = SchemaType(shape=Shape.ANY, go="runtime.RawExtension")


def struct(go, /, *, map_type="granular", patch_strategy=(), **fields):
    """Return a struct of fields, each given by its type or in full."""
    members = {
        key: field if isinstance(field, Field) else Field(name=key, type=field)
        for key, field in fields.items()
    }
    return SchemaType(
        shape=Shape.STRUCT,
        go=f"v1.{go}",
        load=lambda: members,
        map_type=map_type,
        patch_strategy=frozenset(patch_strategy),
    )


def mapping(items=TEXT, *, atomic=False):
    return SchemaType(shape=Shape.MAP, element=items, map_type="atomic" if atomic else "granular")


def atomic_list(items=TEXT):
    return SchemaType(shape=Shape.LIST, element=items)


def listed_set(items=TEXT):
    return SchemaType(shape=Shape.LIST, element=items, list_type="set", patch_strategy=frozenset({"merge"}))


def listed_map(items, *keys):
    return SchemaType(
        shape=Shape.LIST,
        element=items,
        list_type="map",
        map_keys=keys,
        merge_key=keys[0],
        patch_strategy=frozenset({"merge"}),
    )


PORT = struct(
    "Port",
    port=NUMBER,
    protocol=Field(name="protocol", type=TEXT, default="TCP"),
    name=TEXT,
)
"""The key has two fields, one of which has a default."""

CONTAINER = struct(
    "Container",
    name=TEXT,
    image=TEXT,
    command=atomic_list(),
    env=listed_map(struct("EnvVar", name=TEXT, value=TEXT), "name"),
    ports=listed_map(PORT, "port", "protocol"),
    resources=struct("Resources", limits=mapping(), requests=mapping()),
)

THING = struct(
    "Thing",
    apiVersion=TEXT,
    kind=TEXT,
    metadata=struct(
        "ObjectMeta",
        name=TEXT,
        namespace=TEXT,
        uid=TEXT,
        resourceVersion=TEXT,
        labels=mapping(),
        annotations=mapping(),
        finalizers=listed_set(),
    ),
    spec=struct(
        "ThingSpec",
        replicas=NUMBER,
        paused=FLAG,
        selector=struct("Selector", map_type="atomic", matchLabels=mapping()),
        nodeSelector=mapping(atomic=True),
        strategy=struct("Strategy", patch_strategy=("retainKeys",), type=TEXT, rolling=mapping()),
        containers=listed_map(CONTAINER, "name"),
        args=atomic_list(),
        free=FREE,
        raw=RAW,
    ),
    status=struct(
        "ThingStatus", phase=TEXT, conditions=listed_map(struct("Condition", type=TEXT, status=TEXT), "type")
    ),
)

BOX = struct(
    "Box",
    text=TEXT,
    number=NUMBER,
    flag=FLAG,
    either=EITHER,
    labels=mapping(),
    atomic_map=mapping(atomic=True),
    one=struct("One", a=TEXT, b=TEXT),
    whole=struct("Whole", map_type="atomic", a=TEXT, b=TEXT),
    names=listed_set(),
    plain=atomic_list(),
    containers=listed_map(CONTAINER, "name"),
    ports=listed_map(PORT, "port", "protocol"),
    ones=mapping(struct("One", a=TEXT, b=TEXT)),
    free=FREE,
    raw=RAW,
)
"""One of every kind of field."""


def named(*names):
    """Objects that have only a name."""
    return [{"name": name} for name in names]
