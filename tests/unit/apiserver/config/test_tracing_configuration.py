"""Messages are those of kube-apiserver 1.37, which was started with the same files."""

import sys
from argparse import ArgumentTypeError

import pytest

from mockube.apiserver.config.tracing_configuration import TracingConfiguration, tracing_configuration

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
UNDECODABLE = "unable to decode tracing configuration data: "
INVALID = "failed to validate tracing configuration: "
GO_FIELD = "into Go struct field TracingConfiguration.TracingConfiguration"
VALID = {
    "an empty file": ("", TracingConfiguration()),
    "no fields": (HEAD, TracingConfiguration()),
    "no type": ("endpoint: a:1", TracingConfiguration(endpoint="a:1")),
    "nulls": (f"{HEAD}endpoint: null\nsamplingRatePerMillion: null", TracingConfiguration()),
    "both fields": (
        f"{HEAD}endpoint: localhost:4317\nsamplingRatePerMillion: 1000000",
        TracingConfiguration(endpoint="localhost:4317", samples_per_million=1_000_000),
    ),
    "an older version": (
        "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: TracingConfiguration",
        TracingConfiguration(),
    ),
    "a socket": (f"{HEAD}endpoint: unix:///run/otel", TracingConfiguration(endpoint="unix:///run/otel")),
    "JSON": ('{"kind": "TracingConfiguration", "samplingRatePerMillion": 1}', TracingConfiguration(samples_per_million=1)),
}  # fmt: skip
WRONG = {
    "no object": ("- a", f"{UNDECODABLE}it is not an object"),
    "another kind": (
        "apiVersion: v1\nkind: Pod",
        f'{UNDECODABLE}no kind "Pod" is registered for version "v1"',
    ),
    "another version": (
        "apiVersion: apiserver.config.k8s.io/v2\nkind: TracingConfiguration",
        f'{UNDECODABLE}no kind "TracingConfiguration" is registered for version "apiserver.config.k8s.io/v2"',
    ),
    "unknown fields": (
        f"{HEAD}sampling: 1\nfoo: {{}}",
        f'{UNDECODABLE}strict decoding error: unknown field "foo", unknown field "sampling"',
    ),
    "a field twice": (
        f"{HEAD}endpoint: a\nendpoint: b",
        f'{UNDECODABLE}strict decoding error: yaml: unmarshal errors:\n  line 4: key "endpoint" already set in map',
    ),
    "a text as rate": (
        f"{HEAD}samplingRatePerMillion: abc",
        f"{UNDECODABLE}json: cannot unmarshal string {GO_FIELD}.samplingRatePerMillion of type int32",
    ),
    "a fraction as rate": (
        f"{HEAD}samplingRatePerMillion: 1.5",
        f"{UNDECODABLE}json: cannot unmarshal number 1.5 {GO_FIELD}.samplingRatePerMillion of type int32",
    ),
    "a long number as rate": (
        f"{HEAD}samplingRatePerMillion: 5000000000",
        f"{UNDECODABLE}json: cannot unmarshal number 5000000000 {GO_FIELD}.samplingRatePerMillion of type int32",
    ),
    "a number as endpoint": (
        f"{HEAD}endpoint: 5",
        f"{UNDECODABLE}json: cannot unmarshal number {GO_FIELD}.endpoint of type string",
    ),
    "a large rate": (
        f"{HEAD}samplingRatePerMillion: 1000001",
        f"{INVALID}samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
    ),
    "a negative rate, and a scheme": (
        f"{HEAD}samplingRatePerMillion: -1\nendpoint: http://x:1",
        (
            f"{INVALID}[samplingRatePerMillion: Invalid value: -1: sampling rate must be positive, "
            'endpoint: Invalid value: "http://x:1": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.'
            "  See https://github.com/grpc/grpc/blob/master/doc/naming.md]"
        ),
    ),
    "a port that is no number": (
        f"{HEAD}endpoint: localhost:abc",
        f'{INVALID}endpoint: Invalid value: "dns://localhost:abc": parse "dns://localhost:abc": invalid port ":abc" after host',
    ),
    "a scheme that cannot be parsed": (
        f"{HEAD}endpoint: 'dn%2s://localhost:4317'",
        (
            f'{INVALID}endpoint: Invalid value: "dn%2s://localhost:4317": parse "dn%2s://localhost:4317": '
            "first path segment in URL cannot contain colon"
        ),
    ),
}


@pytest.mark.parametrize(("text", "expected"), VALID.values(), ids=VALID)
def test_valid_file_is_read(tmp_path, text, expected):
    (tmp_path / "tracing.yaml").write_text(text)
    assert tracing_configuration(str(tmp_path / "tracing.yaml")) == expected


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_invalid_file_is_refused_with_upstreams_message(tmp_path, text, message):
    path = tmp_path / "tracing.yaml"
    path.write_text(text)
    with pytest.raises(ArgumentTypeError) as failure:
        tracing_configuration(str(path))
    assert str(failure.value) == f"{path}: {message}"


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match="No such file"):
        tracing_configuration(str(tmp_path / "none.yaml"))


def test_missing_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "tracing.yaml").write_text(HEAD)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ArgumentTypeError) as failure:
        tracing_configuration(str(tmp_path / "tracing.yaml"))
    problem = (
        "traces need the package grpcio: type `pip install grpcio`, or install mockube's extra `tracing`"
    )
    assert str(failure.value) == problem
