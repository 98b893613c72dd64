"""The tool that derives the message table, tested with a small Go package."""

import pytest

from tools.minors.protobuf_table import Member, Message, derive, read_go, read_wire, render, rows

TYPES = """
package v1

const GroupName = "widgets.example"

type Flavours []string

// Widget is a kind.
type Widget struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero" protobuf:"bytes,1,opt,name=metadata"`

	Spec WidgetSpec `json:"spec" protobuf:"bytes,3,opt,name=spec"`
	Shape `json:",inline" protobuf:"bytes,2,opt,name=shape"`
}

type WidgetSpec struct {
	// Size is a pointer.
	Size *int32 `json:"size,omitempty" protobuf:"varint,2,opt,name=size"`
	Names []string `json:"names" protobuf:"bytes,1,rep,name=names"`
	Flavours Flavours `json:"flavours" protobuf:"bytes,3,opt,name=flavours"`
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,4,rep,name=labels"`
	Extra runtime.RawExtension `json:"extra,omitempty" protobuf:"bytes,5,opt,name=extra"`
	Unsent string `json:"unsent"`
}
"""
WIDGET = [
    ["metadata", 1, "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"],
    ["shape", 2, "Shape"],
    ["spec", 3, "WidgetSpec"],
]
SPEC = [
    ["names", 1, "string", "r"],
    ["size", 2, "int32"],
    ["flavours", 3, "Flavours"],
    ["labels", 4, "map<string,string>"],
    ["extra", 5, ".k8s.io.apimachinery.pkg.runtime.RawExtension"],
]


@pytest.fixture
def modules(tmp_path):
    folder = tmp_path / "widgets/v1"
    folder.mkdir(parents=True)
    (folder / "types.go").write_text(TYPES)
    return tmp_path


def test_message_table_is_derived_from_go_modules(modules):
    wire = {"k8s.io.api.widgets.v1": {"Widget": WIDGET, "WidgetSpec": SPEC, "Helper": []}}
    table = derive(wire, {"k8s.io.api": modules})
    assert table["kinds"]["widgets.example/v1"] == {"Widget": "widgets.v1.Widget"}
    assert table["messages"] == {
        "widgets.v1.Widget": [
            ["metadata", 1, "meta.v1.ObjectMeta", "omitzero"],
            ["spec", 3, "widgets.v1.WidgetSpec", "always"],
            ["", 2, "widgets.v1.Shape", "inline"],
        ],
        "widgets.v1.WidgetSpec": [
            ["size", 2, "*int32"],
            ["names", 1, "[]string", "always"],
            ["flavours", 3, "*widgets.v1.Flavours", "always"],
            ["labels", 4, "map[string]string"],
            ["extra", 5, "runtime.RawExtension"],
        ],
    }


PROTO = """
syntax = "proto2";

package k8s.io.api.widgets.v1;

// Widget is a message.
message Widget {
  // Name is a field.
  optional string name = 1;

  repeated .k8s.io.api.core.v1.Pod pods = 3;
  map<string, Size> sizes = 2;
}

message Empty {
}
"""


def test_wire_numbers_are_those_of_proto_files(tmp_path):
    (tmp_path / "generated.proto").write_text(PROTO)
    fields = [
        ["name", 1, "string"],
        ["pods", 3, ".k8s.io.api.core.v1.Pod", "r"],
        ["sizes", 2, "map<string,Size>"],
    ]
    assert read_wire([tmp_path]) == {"k8s.io.api.widgets.v1": {"Widget": fields, "Empty": []}}


def test_field_in_only_one_source_stops_tool(modules):
    members = read_go(modules / "widgets/v1").members["WidgetSpec"]
    message = Message("k8s.io.api.widgets.v1", "widgets.v1.WidgetSpec", SPEC[:-1], members)
    with pytest.raises(SystemExit, match=r"the wire has the fields \[1, 2, 3, 4\], Go has \[1, 2, 3, 4, 5\]"):
        rows(message)


def test_list_items_are_encoded_even_if_empty():
    items = Message(
        "k8s.io.api.widgets.v1",
        "widgets.v1.WidgetList",
        [["items", 2, "Widget", "r"]],
        {2: Member("items", optional=False, json_option="always")},
    )
    assert rows(items) == [["items", 2, "[]widgets.v1.Widget", "empty"]]


def test_message_is_one_line_of_table():
    text = render(
        {
            "version": "v0",
            "kinds": {"v1": {"B": "b", "A": "a"}},
            "messages": {"b": [], "a": [["x", 1, "string"]]},
        }
    )
    assert (
        text
        == '{"version":"v0",\n"kinds":{\n"v1":{"A":"a","B":"b"}},\n"messages":{\n"a":[["x",1,"string"]],\n"b":[]}}\n'
    )


@pytest.mark.parametrize("tag", ['json:",inline"', 'json:""'], ids=["until 1.36", "since 1.37"])
def test_embedded_structs_are_kinds_and_inline_fields(tmp_path, tag):
    (tmp_path / "types.go").write_text(
        "type Thing struct {\n"
        f"\tmetav1.TypeMeta `{tag}`\n"
        f'\tSource `{tag} protobuf:"bytes,1,opt,name=source"`\n'
        '\tName string `json:"name,omitempty" protobuf:"bytes,2,opt,name=name"`\n'
        "}\n"
    )
    go = read_go(tmp_path)
    assert go.kinds == {"Thing"}
    assert {number: (member.name, member.json_option) for number, member in go.members["Thing"].items()} == {
        1: ("", "inline"),
        2: ("name", "omitempty"),
    }
