"""Secrets without their secret values."""

import pytest

from mockube.apimachinery.secrets import MASK, masked


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ({"kind": "Secret", "data": {"a": "eA=="}}, (), {"kind": "Secret", "data": {"a": MASK}}),
        ("eA==", ("data", "a"), MASK),
        ({"a": "x"}, ("stringData",), {"a": MASK}),
        ("Opaque", ("type",), "Opaque"),
    ],
    ids=["object", "value", "field", "other field"],
)
def test_secret_values_are_masked(value, path, expected):
    assert masked(value, path) == expected


def test_last_applied_configuration_is_masked():
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n"}
    shown = masked({"metadata": {"annotations": annotations}})["metadata"]["annotations"]
    assert shown == {"kubectl.kubernetes.io/last-applied-configuration": MASK, "note": "n"}
