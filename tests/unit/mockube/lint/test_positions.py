"""The lines of fields in YAML and JSON texts."""

import pytest

from mockube.importing.documents import parse
from mockube.lint.objects import object_of
from mockube.lint.positions import parse_path

FILE = b"""\
# the first document
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
---

# the second
apiVersion: v1
kind: Service
metadata:
  labels:
    example.com/a: b
spec:
  ports:
    - port: 80
    - name: x
      port: 81
---
kind: List
apiVersion: v1
items:
- apiVersion: v1
  kind: ConfigMap
  data:
    a: b
- apiVersion: v1
  kind: Secret
---
{"apiVersion": "v1", "kind": "List",
 "items": [
  {"kind": "Secret"}
 ]}
"""


def positions():
    return [object_of(parsed, file="f").position for parsed in parse(FILE, "f")]


def test_objects_begin_at_their_first_line():
    assert [position.line for position in positions()] == [2, 9, 23, 27, 32]


@pytest.mark.parametrize(
    ("document", "field", "line"),
    [
        (0, "metadata.name", 5),
        (1, "spec.ports[0]", 16),
        (1, "spec.ports[1].port", 18),
        (1, "metadata.labels[example.com/a]", 13),
        (1, "spec.ports[7].port", 15),
        (1, "spec.type", 14),
        (1, "absent", 9),
        (2, "data.a", 26),
        (4, "kind", 32),
    ],
)
def test_line_of_field_is_that_of_its_last_step_in_text(document, field, line):
    assert positions()[document].line_of(parse_path(field)) == line


def test_field_of_unreadable_text_is_at_line_of_document():
    (parsed,) = parse(b"\na: [", "f")
    assert object_of(parsed, file="f").position.line_of(("a",)) == 2


def test_last_value_of_key_counts():
    (parsed,) = parse(b"kind: ConfigMap\nmetadata: {name: a}\nkind: Secret\n", "f")
    assert object_of(parsed, file="f").position.line_of(("kind",)) == 3


def test_path_has_indexes_and_keys():
    assert parse_path("spec.ports[0].name") == ("spec", "ports", 0, "name")
    assert parse_path("metadata.annotations[a.b/c]") == ("metadata", "annotations", "a.b/c")
