"""The rules of pods, their templates and nodes that 1.37 changed, beside those of 1.36."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.served_kinds import kinds_of

PODS, TEMPLATES, NODES = "pods", "podtemplates", "nodes"
CONTAINER = {"name": "a", "image": "a", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
SPEC = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
MINORS = ("1.37", "1.36")


def row(resource, minor):
    return next(
        kind.resource
        for kind in kinds_of(minor).all
        if kind.resource.group_resource == GroupResource("", resource)
    )


def named(tree, resource):
    metadata = {"name": "a", "uid": "u", "resourceVersion": "1"}
    if resource != NODES:
        metadata["namespace"] = "default"
    return {"metadata": metadata | tree.pop("metadata", {})} | tree


def spec(**fields):
    container = CONTAINER | fields.pop("container", {})
    return SPEC | {"containers": [container]} | fields


def template(**fields):
    return {"template": {"spec": spec(**fields)}}


def create_errors(resource, tree, minor):
    errors = kind_rules.check_create(row(resource, minor), named(dict(tree), resource), kinds_of(minor))
    return [str(error) for error in errors]


def update_errors(resource, new, old, minor, subresource=""):
    trees = (named(dict(tree), resource) for tree in (new, old))
    errors = kind_rules.check_update(row(resource, minor), subresource, *trees, kinds_of(minor))
    return [str(error) for error in errors]


IMAGE = {"volumes": [{"name": "v", "image": {"pullPolicy": "Always"}}]}
REFERENCE = "spec.volumes[0].image.reference: Required value"


def test_image_volumes_of_templates_need_reference_since_1_37():
    assert create_errors(TEMPLATES, template(**IMAGE), "1.37") == [f"template.{REFERENCE}"]
    assert create_errors(TEMPLATES, template(**IMAGE), "1.36") == []
    assert [create_errors(PODS, {"spec": spec(**IMAGE)}, minor) for minor in MINORS] == [[REFERENCE]] * 2


def test_template_keeps_image_volume_without_reference():
    old, new = (template(**IMAGE, priorityClassName=name) for name in ("a", "b"))
    assert update_errors(TEMPLATES, new, old, "1.37") == []


def test_any_selinux_policy_is_allowed_since_1_37():
    tree = template(securityContext={"seLinuxChangePolicy": "MountOption"})
    assert create_errors(TEMPLATES, tree, "1.37") == []
    assert create_errors(TEMPLATES, tree, "1.36") == [
        (
            'template.spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: '
            '"Recursive"'
        )
    ]


def test_template_with_sys_admin_may_forbid_escalation_since_1_37():
    before = {"capabilities": {"add": ["CAP_SYS_ADMIN"]}}
    after = before | {"allowPrivilegeEscalation": False}
    old, new = (template(container={"securityContext": context}) for context in (before, after))
    assert update_errors(TEMPLATES, new, old, "1.37") == []
    (problem,) = update_errors(TEMPLATES, new, old, "1.36")
    assert problem.endswith(
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
    )
    assert len(create_errors(TEMPLATES, new, "1.37")) == 1


@pytest.mark.parametrize(
    ("minor", "path"),
    [("1.37", "spec.shareProcessNamespace"), ("1.36", "spec.securityContext.shareProcessNamespace")],
)
def test_path_of_shared_processes(minor, path):
    tree = {"spec": spec(shareProcessNamespace=True, hostPID=True)}
    assert create_errors(PODS, tree, minor) == [
        f"{path}: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"
    ]


@pytest.mark.parametrize(
    ("minor", "fields"),
    [
        ("1.37", ["securityContext.runAsUser", "hostPID", "shareProcessNamespace"]),
        ("1.36", ["hostPID", "shareProcessNamespace", "securityContext.runAsUser"]),
    ],
)
def test_order_of_windows_errors(minor, fields):
    wrong = {"hostPID": True, "shareProcessNamespace": False, "securityContext": {"runAsUser": 1}}
    errors = create_errors(PODS, {"spec": spec(os={"name": "windows"}, **wrong)}, minor)
    assert errors == [f"spec.{field}: Forbidden: cannot be set for a windows pod" for field in fields]


@pytest.mark.parametrize(
    ("minor", "problem"),
    [
        ("1.37", "Invalid value: null: field cannot be modified once set"),
        ("1.36", 'Forbidden: node updates may not change providerID except from "" to valid'),
    ],
)
def test_provider_of_node_is_set_once(minor, problem):
    old, new = ({"spec": {"providerID": provider}} for provider in ("a", "b"))
    assert update_errors(NODES, new, old, minor) == [f"spec.providerID: {problem}"]


def status(**fields):
    return {"spec": spec(), "status": {"containerStatuses": [{"name": "a"} | fields]}}


def test_runtime_may_report_any_user_since_1_37():
    new, old = status(user={"linux": {"uid": 2**31}}), status()
    assert update_errors(PODS, new, old, "1.37", "status") == []
    assert update_errors(PODS, new, old, "1.36", "status") == [
        (
            "status.containerStatuses[0].user.linux.uid: Invalid value: 2147483648: must be between 0 and "
            "2147483647, inclusive"
        )
    ]


def test_claims_of_extended_resources_are_known_since_1_37():
    container = {"resources": {"requests": {"example.com/a": "1"}}}
    new = status(allocatedResourcesStatus=[{"name": "claim:x/r"}]) | {"spec": spec(container=container)}
    mapping = {"containerName": "a", "resourceName": "example.com/a", "requestName": "r"}
    new["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "x", "requestMappings": [mapping]}
    assert update_errors(PODS, new, status(), "1.37", "status") == []
    (problem,) = update_errors(PODS, new, status(), "1.36", "status")
    assert "in a format 'claim:<claimName>/<request>'" in problem


def test_containers_with_claims_are_resized_since_1_37():
    def resized(cpu):
        resources = {"requests": {"cpu": cpu}, "claims": [{"name": "c"}]}
        return {
            "spec": spec(
                container={"resources": resources},
                resourceClaims=[{"name": "c", "resourceClaimName": "c"}],
            )
        }

    assert update_errors(PODS, resized("2"), resized("1"), "1.37", "resize") == []
    assert update_errors(PODS, resized("2"), resized("1"), "1.36", "resize") == [
        "spec: Forbidden: only cpu and memory resources are mutable"
    ]


@pytest.mark.parametrize(
    ("minor", "line"), [("1.37", '+ "HostNetwork": true,'), ("1.36", '+  "HostNetwork": true,')]
)
def test_difference_of_specs_has_fields_of_internal_type(minor, line):
    """Before 1.37, the fields of the host stand in the security context."""
    old, new = ({"spec": spec(hostNetwork=value, securityContext={})} for value in (False, True))
    (problem,) = update_errors(PODS, new, old, minor)
    assert line in problem.splitlines()
