"""The schemas of built-in types: samples, completeness, and lazy creation."""

import pytest

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape


def follow(type_, path):
    """Return the type at a path of fields, where `*` stands for the items of a list or map."""
    for step in path.split("."):
        type_ = type_.items if step == "*" else type_.fields[step].type
    return type_


def field(schemas, api_version, kind, path):
    parent, _, name = path.rpartition(".")
    root = schemas.kind(api_version, kind)
    return (follow(root, parent) if parent else root).fields[name]


def test_kind_is_found_by_api_version(schemas):
    deployment = schemas.kind("apps/v1", "Deployment")
    assert deployment.name == "io.k8s.api.apps.v1.Deployment"
    assert deployment.go == "v1.Deployment"
    assert deployment is schemas.definition("io.k8s.api.apps.v1.Deployment")


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Deployment"), ("apps/v9", "Deployment"), ("", "")])
def test_unknown_kind_has_no_schema(schemas, api_version, kind):
    assert schemas.kind(api_version, kind) is None


def test_unknown_definition_raises_key_error(schemas):
    with pytest.raises(KeyError, match=r"io\.k8s\.api\.core\.v1\.Nothing"):
        schemas.definition("io.k8s.api.core.v1.Nothing")


def test_release_without_schema_facts_is_refused():
    with pytest.raises(ValueError, match="not in tuple"):
        builtin.load("1.0")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("v1", "Pod", id="the core group"),
        pytest.param("v1", "Status", id="responses"),
        pytest.param("apps/v1", "DeleteOptions", id="options, in every group"),
        pytest.param("meta.k8s.io/v1", "Table", id="transformed responses"),
        pytest.param("autoscaling/v1", "Scale", id="subresources"),
        pytest.param("authentication.k8s.io/v1", "TokenRequest", id="requests"),
        pytest.param("admission.k8s.io/v1", "AdmissionReview", id="webhook reviews"),
        pytest.param("apiextensions.k8s.io/v1", "CustomResourceDefinition", id="definitions"),
        pytest.param("apiregistration.k8s.io/v1", "APIService", id="aggregation"),
    ],
)
def test_kinds_of_every_origin_have_schemas(schemas, api_version, kind):
    assert (api_version, kind) in set(schemas.kinds())
    assert list(schemas.kind(api_version, kind).fields)[:2] == ["kind", "apiVersion"]


@pytest.mark.parametrize(
    ("path", "shape", "go"),
    [
        ("metadata", Shape.STRUCT, "v1.ObjectMeta"),
        ("metadata.labels", Shape.MAP, "map[string]string"),
        ("metadata.creationTimestamp", Shape.TIME, "v1.Time"),
        ("metadata.managedFields.*.fieldsV1", Shape.ANY, "v1.FieldsV1"),
        ("spec.containers", Shape.LIST, "[]v1.Container"),
        ("spec.containers.*.resources.limits", Shape.MAP, "v1.ResourceList"),
        ("spec.containers.*.resources.limits.*", Shape.QUANTITY, "resource.Quantity"),
        ("spec.containers.*.livenessProbe.httpGet.port", Shape.INT_OR_STRING, "intstr.IntOrString"),
        ("spec.containers.*.imagePullPolicy", Shape.STRING, "v1.PullPolicy"),
        ("spec.activeDeadlineSeconds", Shape.INTEGER, "int64"),
        ("spec.hostNetwork", Shape.BOOLEAN, "bool"),
    ],
)
def test_pod_fields_have_types(schemas, path, shape, go):
    found = follow(schemas.kind("v1", "Pod"), path)
    assert (found.shape, found.go) == (shape, go)


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "expected"),
    [
        pytest.param(
            "v1", "Pod", "spec.containers.*.ports",
            ("map", ("containerPort", "protocol"), "containerPort", {"merge"}), id="a map with two keys",
        ),
        pytest.param(
            "v1", "Pod", "spec.volumes", ("map", ("name",), "name", {"merge", "retainKeys"}), id="retained keys"
        ),
        pytest.param(
            "v1", "Pod", "metadata.finalizers", ("set", (), "", {"merge"}), id="a set that merges"
        ),
        pytest.param("v1", "Pod", "spec.tolerations", ("atomic", (), "", set()), id="an atomic list"),
        pytest.param(
            "v1", "Service", "spec.ports", ("map", ("port", "protocol"), "port", {"merge"}), id="of a service"
        ),
    ],
)  # fmt: skip
def test_list_merge_rules_are_upstreams(schemas, api_version, kind, path, expected):
    found = follow(schemas.kind(api_version, kind), path)
    assert (found.list_type, found.map_keys, found.merge_key, found.patch_strategy) == expected


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "expected"),
    [
        pytest.param("apps/v1", "Deployment", "spec.selector", "atomic", id="declared by its struct"),
        pytest.param("v1", "Secret", "data", "granular", id="not declared"),
        pytest.param("v1", "Pod", "spec.nodeSelector", "atomic", id="declared by the field"),
        pytest.param("v1", "PersistentVolume", "spec.claimRef", "granular", id="field overrides struct"),
    ],
)
def test_map_types_are_upstreams(schemas, api_version, kind, path, expected):
    assert follow(schemas.kind(api_version, kind), path).map_type == expected


def test_list_key_has_default(schemas):
    assert field(schemas, "v1", "Pod", "spec.containers.*.ports.*.protocol").default == "TCP"
    assert field(schemas, "v1", "Service", "spec.ports.*.protocol").default == "TCP"
    assert field(schemas, "v1", "Service", "spec.ports.*.port").default == 0
    assert field(schemas, "v1", "Pod", "spec.containers.*.name").default == ""
    assert field(schemas, "v1", "Service", "spec.ports.*.nodePort").default is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("spec.containers", {"required"}, id="always written"),
        pytest.param("spec.hostNetwork", {"omit_empty"}, id="omitted if empty"),
        pytest.param(
            "spec.automountServiceAccountToken", {"omit_empty", "pointer"}, id="explicit false is written"
        ),
        pytest.param("metadata.creationTimestamp", {"omit_empty", "omit_zero"}, id="omitted if zero"),
        pytest.param("spec.containers.*.resources", {"omit_empty"}, id="struct is always written"),
    ],
)
def test_go_facts_of_field_are_upstreams(schemas, path, expected):
    found = field(schemas, "v1", "Pod", path)
    facts = ("required", "pointer", "omit_empty", "omit_zero")
    assert {name for name in facts if getattr(found, name)} == expected


def test_embedded_structs_are_named(schemas):
    assert field(schemas, "v1", "Pod", "spec.volumes.*.hostPath").embedded == ("VolumeSource",)
    assert field(schemas, "v1", "Pod", "spec.volumes.*.name").embedded == ()


def test_struct_may_contain_itself(schemas):
    schema = follow(
        schemas.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        "spec.versions.*.schema.openAPIV3Schema",
    )
    assert follow(schema, "properties.*.not.items").items.name == schema.name


def test_each_type_is_created_once(schemas):
    pod = schemas.kind("v1", "Pod")
    template = schemas.kind("apps/v1", "Deployment").fields["spec"].type.fields["template"].type
    assert template.fields["spec"].type is not pod.fields["spec"].type
    assert template.fields["spec"].type.fields is pod.fields["spec"].type.fields


def test_every_struct_can_be_created(schemas):
    """The test visits every type reachable from a kind; a missing struct raises KeyError."""
    seen, waiting = set(), [schemas.kind(*key) for key in schemas.kinds()]
    while waiting:
        found = waiting.pop()
        if found.shape is Shape.STRUCT and found.name in seen:
            continue
        seen.add(found.name)
        waiting += [member.type for member in found.fields.values()]
        waiting += [found.element] if found.element else []
    assert len(seen) > 1000


def test_descriptions_are_upstreams(schemas):
    pod = schemas.kind("v1", "Pod")
    assert pod.description.startswith("Pod is a collection of containers")
    assert field(schemas, "v1", "Pod", "spec.volumes.*.hostPath").description.startswith(
        "hostPath represents"
    )


def test_undocumented_field_has_empty_description(schemas):
    review = schemas.kind("admission.k8s.io/v1", "AdmissionReview")
    assert (review.description, review.fields["request"].description) == ("", "")
    assert follow(schemas.kind("v1", "Pod"), "spec.containers").description == ""
