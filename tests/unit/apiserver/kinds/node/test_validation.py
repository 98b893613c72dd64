"""Validation of RuntimeClasses."""

import pytest

from tests.support.field_rules import create_errors, update_errors

EXISTS = {"operator": "Exists"}


def runtime_class(**fields):
    return {"metadata": {"name": "r"}, "handler": "h", **fields}


CLASSES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"handler": ""}, ["handler: Required value"], id="no handler"),
    pytest.param({"handler": "A"},
        [('handler: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="invalid handler"),
    pytest.param({"overhead": {"podFixed": {"cpu": "1", "memory": "1Mi"}}}, [], id="overhead"),
    pytest.param({"overhead": {}}, [], id="empty overhead"),
    pytest.param({"overhead": {"podFixed": {"cpu": "-1"}}},
        ['overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'], id="negative overhead"),
    pytest.param({"overhead": {"podFixed": {"gpu": "1"}}},
        ['overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
         'overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers'],
        id="unknown resource of the overhead"),
    pytest.param({"scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [EXISTS]}}, [], id="scheduling"),
    pytest.param({"scheduling": {"nodeSelector": {"a b": "c d"}}},
        [('scheduling.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('scheduling.nodeSelector: Invalid value: "c d": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
    pytest.param({"scheduling": {"tolerations": [{}]}},
        [('scheduling.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, '
          'which means "match all values and all keys"')], id="invalid toleration"),
    pytest.param({"scheduling": {"tolerations": [EXISTS, EXISTS]}},
        [("scheduling.tolerations[1]: Duplicate value: "
          '{"Key":"","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}')], id="toleration twice"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_classes_are_validated(change, expected):
    assert create_errors("node.k8s.io/v1", "RuntimeClass", runtime_class(**change)) == expected


CHANGES = [
    pytest.param({}, {"scheduling": {"nodeSelector": {"a": "b"}}}, [], id="scheduling"),
    pytest.param({}, {"handler": "i"}, ["handler: Invalid value: null: field is immutable"], id="handler"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_classes_are_validated(old, new, expected):
    assert (
        update_errors("node.k8s.io/v1", "RuntimeClass", runtime_class(**old), runtime_class(**new))
        == expected
    )
