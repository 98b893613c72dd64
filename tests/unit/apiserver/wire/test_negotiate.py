"""Accept headers: which of the offered formats is selected."""

import pytest

from mockube.apiserver.wire.negotiation import (
    MAX_ACCEPT,
    EndpointType,
    MediaType,
    OutputFormat,
    View,
    consumes,
    matches_route,
    negotiate,
    parse_media_type,
    patch_media_type,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", OutputFormat(format=MediaType.JSON), id="empty"),
        pytest.param("*/*", OutputFormat(format=MediaType.JSON), id="anything"),
        pytest.param("application/*", OutputFormat(format=MediaType.JSON), id="any application"),
        pytest.param(
            "image/png, application/yaml", OutputFormat(format=MediaType.YAML), id="first supported format"
        ),
        pytest.param("APPLICATION/JSON", None, id="capitals"),
        pytest.param("garbage", None, id="no media type"),
        pytest.param("*", OutputFormat(format=MediaType.JSON), id="a star"),
        pytest.param(
            "application/json/x,application/yaml", OutputFormat(format=MediaType.YAML), id="two slashes"
        ),
        pytest.param("application/json;stream=watch", OutputFormat(format=MediaType.JSON), id="a stream"),
        pytest.param("application/yaml;stream=watch", None, id="stream parameter with an unsupported type"),
        pytest.param("application/json;stream=x", None, id="an unknown stream"),
        pytest.param(
            "application/json;sv=v1", OutputFormat(format=MediaType.JSON), id="a version of the group"
        ),
        pytest.param("application/json;sv=v2", None, id="an unknown version of the group"),
        pytest.param("application/json;v=v1", None, id="v without as"),
        pytest.param("application/json;as=", OutputFormat(format=MediaType.JSON), id="empty as"),
        pytest.param(
            "application/json;pretty=1", OutputFormat(format=MediaType.JSON, pretty=True), id="pretty"
        ),
        pytest.param(
            "application/json;q=0.1,*/*", OutputFormat(format=MediaType.JSON), id="anything rather than JSON"
        ),
        pytest.param(
            "*/*;q=0.9,application/yaml;q=0.1",
            OutputFormat(format=MediaType.YAML),
            id="a name before a range",
        ),
        pytest.param(
            "application/vnd.kubernetes.protobuf,application/json",
            OutputFormat(format=MediaType.PROTOBUF),
            id="protobuf first",
        ),
        pytest.param(
            "application/json;q=0.5,application/yaml;q=0.9",
            OutputFormat(format=MediaType.YAML),
            id="by quality",
        ),
        pytest.param(
            f"{TABLE},application/json", OutputFormat(format=MediaType.JSON, view=View.TABLE), id="a table"
        ),
        pytest.param(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            OutputFormat(format=MediaType.JSON),
            id="table of unknown version",
        ),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
            OutputFormat(format=MediaType.JSON, view=View.PARTIAL, version="v1beta1", is_list=True),
            id="metadata alone",
        ),
        pytest.param("image/png", None, id="unsupported type"),
        pytest.param(
            f"{TABLE.replace('json', 'vnd.kubernetes.protobuf')},application/yaml",
            OutputFormat(format=MediaType.YAML),
            id="table as protobuf is not offered",
        ),
        pytest.param("application/json;as=Table;v=v1;g=other", None, id="a table of another group"),
        pytest.param(
            "application/json;q=x", OutputFormat(format=MediaType.JSON), id="a quality that is no number"
        ),
    ],
)
def test_accept_header_is_negotiated(accept, expected):
    assert negotiate(accept) == expected


@pytest.mark.parametrize(
    ("accept", "endpoint", "expected"),
    [
        ("application/vnd.kubernetes.protobuf", EndpointType.CUSTOM, None),
        ("application/vnd.kubernetes.protobuf", EndpointType.PLAIN, MediaType.PROTOBUF),
        (TABLE, EndpointType.CUSTOM, MediaType.JSON),
        (TABLE, EndpointType.WITHOUT_TABLE, None),
        (TABLE, EndpointType.PLAIN, None),
        (f"{TABLE},application/yaml", EndpointType.PLAIN, MediaType.YAML),
        ("application/json;sv=v1", EndpointType.PLAIN, None),
        ("application/json", EndpointType.DISCOVERY, None),
        (
            "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            EndpointType.DISCOVERY,
            MediaType.YAML,
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            EndpointType.DISCOVERY,
            None,
        ),
    ],
)
def test_endpoint_negotiates_its_formats(accept, endpoint, expected):
    found = negotiate(accept, endpoint)
    assert (found and found.format) == expected


def test_accept_clauses_are_sorted_by_quality_and_order():
    many = [f"text/x{number};q=0.1" for number in range(20)]
    assert negotiate(",".join([*many, "*/*;q=0.2", "application/yaml;q=0.3"])).format is MediaType.YAML


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", True),
        ("*/*", True),
        ("text/html, application/yaml;as=Chart", True),
        ("application/*", False),
        ("application/*, application/json", True),
        ("*", False),
        ("text/html", False),
    ],
)
def test_route_matching_ignores_ranges(accept, expected):
    assert matches_route(accept) is expected


@pytest.mark.thorough
def test_clauses_that_end_behind_the_limit_are_ignored():
    unknown = "a/b," * (MAX_ACCEPT // 4 - 5)
    last = "application/yaml"
    fitting = f"{unknown:,<{MAX_ACCEPT - len(last)}}{last}"
    assert negotiate(fitting) == OutputFormat(format=MediaType.YAML)
    assert negotiate(f"{fitting},application/json") == OutputFormat(format=MediaType.YAML)
    assert negotiate(f",{fitting}") is None
    assert matches_route(fitting)
    assert not matches_route(f",{fitting}")


def test_single_clause_above_the_limit_is_ignored():
    assert negotiate(f"application/json;a={'a' * MAX_ACCEPT}") is None


# --- Content-Type


@pytest.mark.parametrize(
    "header",
    [
        "application/json",
        "Application/JSON",
        " application/json ",
        "application/json;",
        "application/json ; charset=utf-8",
        "application/json; a=1; A=1",
        'application/json; a="1"; a=1',
        'application/json; a="x\\"y;"',
        'application/json; a=""',
        "application/json; a*0=x; a*1=y",
    ],
)
def test_media_type_is_read_as_by_go(header):
    assert parse_media_type(header) == "application/json"


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("application/json;;", id="two semicolons"),
        pytest.param("application/json; charset", id="a parameter without a value"),
        pytest.param("application/json; a=", id="an empty token"),
        pytest.param("application/json; a=1; a=2", id="two values of one parameter"),
        pytest.param("application/json; a=1; A=2", id="names in another case"),
        pytest.param('application/json; a="x', id="an open quotation"),
        pytest.param('application/json; a="x\\"', id="a quotation that ends with an escape"),
        pytest.param("application/json, application/json", id="two media types"),
        pytest.param("application / json", id="blanks in the name"),
        pytest.param("application/", id="no subtype"),
        pytest.param("/json", id="no type"),
        pytest.param("application/json/x", id="two slashes"),
        pytest.param(";", id="parameters alone"),
    ],
)
def test_content_type_that_go_refuses_has_no_media_type(header):
    assert parse_media_type(header) == ""


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("application/merge-patch+json", "application/merge-patch+json"),
        ("application/merge-patch+json; charset", "application/merge-patch+json"),
        ("application/merge-patch+json ;a=b", "application/merge-patch+json "),
        ("Application/merge-patch+json", "Application/merge-patch+json"),
        (";application/json", ";application/json"),
    ],
)
def test_patch_type_is_the_header_without_its_parameters(header, expected):
    assert patch_media_type(header) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [("a/b", True), (" a/b ;x", True), ("x/y,a/b", True), ("A/b", False), ("a/b/c", False), ("", False)],
)
def test_route_consumes_any_part_of_the_header(header, expected):
    assert consumes(header, ("a/b",)) is expected
