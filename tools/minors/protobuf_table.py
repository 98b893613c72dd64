"""Derive `apiserver/wire/protobuf/messages.json.gz` from Kubernetes' wire numbers and its Go types.

The wire numbers in `generated.proto` say what each message looks like in protobuf. How the same object looks in JSON (the
fields' names there, their order, what is left out when empty, what is flattened) only the Go types beside them say.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

MODULES = {
    "k8s.io.api": "api",
    "k8s.io.apiextensions_apiserver": "apiextensions-apiserver",
    "k8s.io.apimachinery": "apimachinery",
    "k8s.io.kube_aggregator": "kube-aggregator",
    "k8s.io.metrics": "metrics",
}
"""The proto packages that are taken, by their beginning, and the Go module each is generated from."""

LEFT_OUT = {"k8s.io.apimachinery.pkg.apis.testapigroup.v1"}

META = "k8s.io.apimachinery.pkg.apis.meta.v1"
META_KINDS = {
    "v1": ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"),
    "meta.k8s.io/v1": ("PartialObjectMetadata", "PartialObjectMetadataList"),
    "meta.k8s.io/v1beta1": ("PartialObjectMetadata",),
    "*": ("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"),
}
"""Where the kinds of that package are registered; `*` is every group and version."""

ALIASES = {"admissionregistration.v1alpha1.MatchCondition": "admissionregistration.v1.MatchCondition"}
"""Messages that Go declares as another package's."""

NO_STRUCTS = re.compile(
    r"resource\.Quantity|meta\.v1\.(?:FieldsV1|MicroTime|Time|Verbs)|.*\.(?:ExtraValue|AttestationValue)"
)
"""Messages that are no structs in Go, or have no tags there. JSON has a form of its own for each."""

JSON_TEXTS = re.compile(r"runtime\.RawExtension|meta\.v1\.FieldsV1|apiextensions\.\w+\.JSON")
"""Messages whose bytes are JSON themselves."""

SHORTENED = re.compile(r"\.?k8s\.io\.(?:api|\w+\.pkg\.apis|apimachinery\.pkg(?:\.api|\.util)?)\.(?=\w)")
"""What is cut from `k8s.io.api.core.v1.Pod` to name it `core.v1.Pod`."""

PROTO_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
PROTO_MESSAGE = re.compile(r"^message (?P<name>\w+) \{\n(?P<body>.*?)^\}", re.DOTALL | re.MULTILINE)
PROTO_FIELD = re.compile(
    r"^  (?:(?P<label>optional|repeated|required) )?(?P<type>map<[^>]*>|[\w.]+) (?P<name>\w+) = (?P<number>\d+)",
    re.MULTILINE,
)

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
SLICE = re.compile(r"^type (\w+) \[\]", re.MULTILINE)
MEMBER = re.compile(r"^\t(?:\w+\s+)?(?P<type>[\w.\[\]*]+)\s+`(?P<tags>[^`]*)`", re.MULTILINE)
TYPE_META = re.compile(r'TypeMeta `json:"(?:,inline)?"')
"""The mark of a kind; since 1.37 upstream writes no `inline`."""
TAG = re.compile(r'(\w+):"([^"]*)"')
GROUP_NAME = re.compile(r'^const GroupName = "([^"]*)"', re.MULTILINE)

WireField: TypeAlias = list[Any]
"""The name, number, type, and "r" where repeated."""
Row: TypeAlias = list[Any]
"""As in the table: name in JSON, number, type as Go would write it, and the option of JSON if not `omitempty`."""


class Member(NamedTuple):
    """A field of a Go struct, as far as it decides what the JSON looks like. What is optional can be nil."""

    name: str
    optional: bool
    json_option: str


class Message(NamedTuple):
    """A message, by both sources."""

    package: str
    name: str
    fields: list[WireField]
    members: Mapping[int, Member]


@dataclass(frozen=True, kw_only=True)
class GoPackage:
    """`members` are by struct and protobuf number, in the order in which the struct declares them."""

    group: str | None
    kinds: frozenset[str]
    members: Mapping[str, Mapping[int, Member]]


def read_wire(folders: Iterable[Path]) -> dict[str, dict[str, list[WireField]]]:
    """The messages of each package that the modules in these folders declare in `generated.proto`."""
    texts = [path.read_text() for folder in folders for path in sorted(folder.rglob("generated.proto"))]
    return {
        package[1]: {
            message["name"]: [_wire_field(field) for field in PROTO_FIELD.finditer(message["body"])]
            for message in PROTO_MESSAGE.finditer(text)
        }
        for text in texts
        for package in [PROTO_PACKAGE.search(text)]
        if package
    }


def _wire_field(field: re.Match[str]) -> WireField:
    repeated = ["r"] if field["label"] == "repeated" else []
    return [field["name"], int(field["number"]), field["type"].replace(" ", ""), *repeated]


def derive(
    wire: Mapping[str, Mapping[str, list[WireField]]], folders: Mapping[str, Path]
) -> dict[str, dict[str, Any]]:
    """The kinds and messages of wire numbers; `folders` are those of the modules by the beginning of the proto packages."""
    kinds = {of: {kind: shorten(f"{META}.{kind}") for kind in names} for of, names in META_KINDS.items()}
    messages: dict[str, Message] = {}
    for package, declared in wire.items():
        folder = go_folder(package, folders)
        if folder is None or package in LEFT_OUT:
            continue
        go = read_go(folder)
        for name, fields in declared.items():
            message = Message(package, shorten(f"{package}.{name}"), fields, go.members.get(name, {}))
            messages[message.name] = message
        if go.group is not None and package != META:
            of = api_version(go.group, package)
            kinds[of] = kinds.get(of, {}) | {
                kind: shorten(f"{package}.{kind}") for kind in go.kinds & declared.keys()
            }
    roots = [message for by_kind in kinds.values() for message in by_kind.values()]
    return {"kinds": kinds, "messages": reachable(roots, messages)}


# --- from Go


def go_folder(package: str, folders: Mapping[str, Path]) -> Path | None:
    for prefix, folder in folders.items():
        if package.startswith(f"{prefix}."):
            return folder / package.removeprefix(f"{prefix}.").replace(".", "/")
    return None


def read_go(folder: Path) -> GoPackage:
    files = [path for path in sorted(folder.glob("*.go")) if not path.name.endswith("_test.go")]
    source = "\n".join(path.read_text() for path in files)
    slices = frozenset(SLICE.findall(source))
    structs = STRUCT.findall(source)
    return GoPackage(
        group=next(iter(GROUP_NAME.findall(source)), None),
        kinds=frozenset(name for name, body in structs if TYPE_META.search(body)),
        members={name: dict(members(body, slices)) for name, body in structs},
    )


def members(body: str, slices: frozenset[str]) -> Iterator[tuple[int, Member]]:
    for match in MEMBER.finditer(body):
        tags = dict(TAG.findall(match["tags"]))
        number = re.match(r"\w+,(\d+),", tags.get("protobuf", ""))
        if number is not None:
            name, *options = tags.get("json", "").split(",")
            is_inline = "inline" in options or tags.get("json") == ""
            json_option = (
                "inline"
                if is_inline
                else next((option for option in ("omitzero", "omitempty") if option in options), "always")
            )
            optional = match["type"].startswith("*") or match["type"] in slices
            yield int(number[1]), Member(name.removeprefix("-"), optional, json_option)


# --- to rows


def reachable(roots: Iterable[str], messages: Mapping[str, Message]) -> dict[str, list[Row]]:
    """The rows of all that some kind contains: the rest of the Go packages is left behind."""
    messages_by_name: dict[str, list[Row]] = {}
    left = list(roots)
    while left:
        name = left.pop()
        if name not in messages_by_name and name in messages:
            messages_by_name[name] = rows(messages[ALIASES.get(name, name)])
            left += [re.sub(r"^(\[\]|\*|map\[string\])", "", row[2]) for row in messages_by_name[name]]
    return messages_by_name


def rows(message: Message) -> list[Row]:
    """In the order of JSON, which is that of Go's struct."""
    by_number = {field[1]: field for field in message.fields}
    members = message.members
    if not members and NO_STRUCTS.fullmatch(message.name):
        members = {number: Member("", optional=True, json_option="omitempty") for number in by_number}
    if members.keys() != by_number.keys():
        raise SystemExit(
            f"{message.name}: the wire has the fields {sorted(by_number)}, Go has {sorted(members)}"
        )
    return [row(message, by_number[number], member) for number, member in members.items()]


def row(message: Message, field: WireField, member: Member) -> Row:
    proto_name, number, proto_type, *repeated = field
    of = "json" if JSON_TEXTS.fullmatch(message.name) else type_name(message.package, proto_type)
    spelled = f"[]{of}" if repeated else f"*{of}" if member.optional else of
    if member.json_option == "inline":
        return ["", number, spelled, "inline"]
    json_option = (
        "empty"
        if repeated and message.name.endswith("List") and proto_name == "items"
        else member.json_option
    )
    return [
        member.name or proto_name,
        number,
        spelled,
        *([] if json_option == "omitempty" else [json_option]),
    ]


def type_name(package: str, proto_type: str) -> str:
    mapped = re.fullmatch(r"map<string,(.*)>", proto_type)
    if mapped:
        return f"map[string]{type_name(package, mapped[1])}"
    if proto_type.islower() and "." not in proto_type:
        return proto_type
    return shorten(proto_type if "." in proto_type else f"{package}.{proto_type}")


def shorten(name: str) -> str:
    return SHORTENED.sub("", name, count=1)


def api_version(group: str, package: str) -> str:
    version = package.rpartition(".")[2]
    return f"{group}/{version}" if group else version


def render(table: Mapping[str, Any]) -> str:
    """One message a line, so that a change reads well."""

    def block(name: str) -> str:
        entries = sorted(table[name].items())
        lines = [
            f'"{key}":{orjson.dumps(entry, option=orjson.OPT_SORT_KEYS).decode()}' for key, entry in entries
        ]
        return f'"{name}":{{\n' + ",\n".join(lines) + "}"

    return f'{{"version":"{table["version"]}",\n{block("kinds")},\n{block("messages")}}}\n'
