import pytest

from apimachinery.patch.apply import scale

REPLICAS = {"apps/v1": ("f:spec", "f:replicas"), "apps/v1beta1": ("f:spec", "f:replicas")}

OWNS = {"f:spec": {"f:replicas": {}}}
OWNS_MORE = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
OWNS_LESS = {"f:spec": {"f:paused": {}}}


def entry(manager, operation, fields=OWNS, version="apps/v1", **more):
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def in_scale(manager, operation, fields=OWNS, **more):
    return entry(manager, operation, fields, "autoscaling/v1", **more)


def test_to_scale():
    entries = [
        entry("a", "Apply", OWNS_MORE, time="T"),
        entry("b", "Apply", OWNS_LESS),
        entry("c", "Update", subresource="scale"),
        entry("d", "Update", version="apps/v0"),
    ]
    assert scale.to_scale(entries, REPLICAS) == [
        in_scale("a", "Apply", time="T"),
        in_scale("c", "Update", subresource="scale"),
    ]


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        pytest.param(
            [entry("a", "Apply", OWNS_MORE, time="T")],
            [in_scale("b", "Update", subresource="scale")],
            [entry("a", "Apply", OWNS_LESS, time="T"), entry("b", "Update", subresource="scale")],
            id="another one takes the number",
        ),
        pytest.param(
            [entry("a", "Update", time="T")],
            [in_scale("b", "Apply", subresource="scale")],
            [entry("b", "Apply", subresource="scale")],
            id="who had nothing else is gone",
        ),
        pytest.param(
            [entry("a", "Apply", OWNS_MORE, time="T"), entry("b", "Apply", OWNS_LESS)],
            [in_scale("a", "Apply")],
            [entry("b", "Apply", OWNS_LESS), entry("a", "Apply", OWNS_MORE, time="T")],
            id="who applied keeps it",
        ),
        pytest.param(
            [entry("a", "Update", OWNS_MORE, time="T")],
            [in_scale("a", "Update", time="T")],
            [entry("a", "Update"), entry("a", "Update", OWNS_LESS, time="T")],
            id="who updated is not known again",
        ),
        pytest.param(
            [entry("a", "Apply", OWNS_LESS, time="T")],
            [in_scale("a", "Apply"), in_scale("b", "Apply", {"f:metadata": {"f:labels": {}}})],
            [entry("a", "Apply", time="T")],
            id="nothing but the number",
        ),
        pytest.param(
            [entry("a", "Apply", version="apps/v0")], [], [], id="a version that there is not any more"
        ),
        pytest.param([], [], [], id="nobody"),
    ],
)
def test_from_scale(before, written, after):
    assert scale.from_scale(before, written, REPLICAS, "apps/v1") == after
