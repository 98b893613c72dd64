"""What Go types say about messages: their kinds, and the fields of embedded structs."""

import pytest

from tools.protobuf_table import read_go


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
