"""Accept headers: what is chosen of what is asked for."""

import pytest

from mockube.apiserver.wire.negotiation import Format, OutputFormat, View, negotiate

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", OutputFormat(format=Format.JSON), id="nothing"),
        pytest.param("*/*", OutputFormat(format=Format.JSON), id="anything"),
        pytest.param("application/*", OutputFormat(format=Format.JSON), id="any application"),
        pytest.param(
            "image/png, application/yaml", OutputFormat(format=Format.YAML), id="the first that can be given"
        ),
        pytest.param("APPLICATION/JSON", OutputFormat(format=Format.JSON), id="capitals"),
        pytest.param(
            "application/vnd.kubernetes.protobuf,application/json",
            OutputFormat(format=Format.PROTOBUF),
            id="protobuf first",
        ),
        pytest.param(
            "application/json;q=0.5,application/yaml;q=0.9", OutputFormat(format=Format.YAML), id="by quality"
        ),
        pytest.param(
            f"{TABLE},application/json", OutputFormat(format=Format.JSON, view=View.TABLE), id="a table"
        ),
        pytest.param(
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            OutputFormat(format=Format.JSON),
            id="a table of a version that nobody knows",
        ),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
            OutputFormat(format=Format.JSON, view=View.PARTIAL, version="v1beta1", listed=True),
            id="metadata alone",
        ),
        pytest.param("image/png", None, id="what cannot be given"),
        pytest.param(
            f"{TABLE.replace('json', 'vnd.kubernetes.protobuf')},application/yaml",
            OutputFormat(format=Format.YAML),
            id="a table in a form that it does not have",
        ),
        pytest.param("application/json;as=Table;v=v1;g=other", None, id="a table of another group"),
        pytest.param(
            "application/json;q=x", OutputFormat(format=Format.JSON), id="a quality that is no number"
        ),
    ],
)
def test_wanted(accept, expected):
    assert negotiate(accept) == expected
