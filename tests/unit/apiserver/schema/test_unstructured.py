"""Errors of Go's converter for unstructured objects of the wrong type."""

import pytest

from mockube.apiserver.schema.unstructured import conversion_error


def container(**fields):
    return {"spec": {"template": {"spec": {"containers": [{"name": "a", **fields}]}}}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, ""),
        ({"metadata": None, "spec": {"replicas": 2.0, "paused": None}}, ""),
        ({"spec": {"replicas": 20_000_000_000}}, ""),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"replicas": "2"}}, "unrecognized type: int32"),
        ({"spec": {"paused": 1}}, "unrecognized type: bool"),
        ({"metadata": {"name": 1}}, "cannot convert int64 to string"),
        ({"metadata": {"name": 2**63}}, "unrecognized type: string"),
        ({"metadata": {"name": 1.0}}, "unrecognized type: string"),
        ({"metadata": {"labels": []}}, "cannot restore map from slice"),
        ({"metadata": {"labels": {"a": {}}}}, "unrecognized type: string"),
        ({"metadata": {"finalizers": {}}}, "cannot restore slice from map"),
        ({"metadata": {"finalizers": [None, True]}}, "unrecognized type: string"),
        ({"metadata": 1}, "cannot restore struct from: int64"),
        (
            {"metadata": {"creationTimestamp": 1}},
            "json: cannot unmarshal number into Go value of type string",
        ),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": []}}}},
            "json: cannot unmarshal array into Go value of type int32",
        ),
        (container(imagePullPolicy=1), "cannot convert int64 to v1.PullPolicy"),
        # Fields are converted in the order of the struct, not of the object.
        ({"status": 1, "spec": "x", "metadata": []}, "cannot restore struct from: slice"),
    ],
)
def test_first_fault_of_unstructured_object_is_reported(schemas, given, message):
    assert conversion_error(schemas.kind("apps/v1", "Deployment"), given) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("YQ==", ""),
        ([1, 2.0, None], ""),
        ("a.b", "error decoding from json: illegal base64 data at input byte 1"),
        ({}, "cannot restore slice from map"),
        ([1.5], "cannot convert float64 to uint8"),
        (["a"], "unrecognized type: uint8"),
    ],
)
def test_bytes_of_unstructured_object_are_checked(schemas, given, message):
    assert conversion_error(schemas.kind("v1", "Secret"), {"data": {"a": given}}) == message
