"""What is said of autoscalers, certificates, definitions, custom objects and what is deleted, in each of their states."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.explanations.catalog import explain
from tests.support.explained import (
    GROUPS,
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
    with_state,
)
from tests.support.told import evidence_of, told

READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
BAD_IMAGE = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
NO_IMAGE = "the image nginx of the container c does not exist in its registry"
TEMPLATE = {"template": {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}}
DELETED = {"deletionTimestamp": "2026-01-31T11:59:50Z"}

# --- autoscalers


def workload(kind, name):
    return thing(kind, name, api_version="apps/v1", spec=TEMPLATE)


def autoscaler(*conditions, name="web", kind="Deployment", target="web", **status):
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    return thing(
        "HorizontalPodAutoscaler",
        name,
        api_version="autoscaling/v2",
        spec={"scaleTargetRef": reference, "maxReplicas": 2},
        status={"conditions": [*conditions], **status},
    )


def unable(message, reason="FailedGetScale", name="AbleToScale"):
    return condition(name, "False", reason, message)


def limited(reason, status="True"):
    return condition("ScalingLimited", status, reason, "m")


ABLE, ACTIVE = condition("AbleToScale", "True", "SucceededGetScale"), condition("ScalingActive", "True")
NOT_FOUND = unable('deployments.apps "web" not found')
PATCH = """- kubectl -n default patch horizontalpodautoscaler/web --type=merge -p '{{"spec":{{"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"{}","name":"{}"}}}}}}'"""
MISSING = [
    "- Or create the Deployment web.",
    "@ horizontalpodautoscaler/web spec.scaleTargetRef",
    "@ deployment/web",
]
AMBIGUOUS = unable(
    "pods by selector are controlled by multiple HPAs: [default/web default/b]",
    "AmbiguousSelector",
    "ScalingActive",
)
NO_REQUEST = unable(
    "missing request for cpu in container c of Pod web-1", "FailedGetResourceMetric", "ScalingActive"
)
OF_SPEC = "@ horizontalpodautoscaler/web spec"
NO_SCALE = "Explained: it does not scale Deployment web, "

AUTOSCALERS = {
    "no conditions": (
        autoscaler(),
        [],
        [
            "Unknown: the autoscaler has no conditions: its controller has not looked at it yet, or does not run"
        ],
    ),
    "nothing exists to scale": (
        autoscaler(NOT_FOUND),
        [],
        [
            "Explained: it does not scale anything: the Deployment web does not exist",
            "- Create the Deployment web.",
            *MISSING[1:],
        ],
    ),
    "a target of a similar name": (
        autoscaler(NOT_FOUND),
        [workload("Deployment", "db"), workload("Deployment", "web2"), workload("StatefulSet", "d")],
        [
            "Explained: it does not scale anything: the Deployment web does not exist",
            PATCH.format("Deployment", "web2"),
            *MISSING,
        ],
    ),
    "a target of the name and another kind": (
        autoscaler(NOT_FOUND),
        [workload("StatefulSet", "web"), workload("Deployment", "db")],
        [
            "Explained: it does not scale anything: the Deployment web does not exist",
            PATCH.format("StatefulSet", "web"),
            *MISSING,
        ],
    ),
    "of two targets of a name, that of the kind": (
        autoscaler(NOT_FOUND),
        [workload("StatefulSet", "we"), workload("Deployment", "we")],
        [
            "Explained: it does not scale anything: the Deployment web does not exist",
            PATCH.format("Deployment", "we"),
            *MISSING,
        ],
    ),
    "its target exists": (
        autoscaler(NOT_FOUND),
        [workload("Deployment", "web")],
        [f'{NO_SCALE}FailedGetScale: deployments.apps "web" not found', OF_SPEC],
    ),
    "its target has no metrics": (
        autoscaler(ABLE, unable("no metrics", "FailedGetResourceMetric", "ScalingActive")),
        [],
        [f"{NO_SCALE}FailedGetResourceMetric: no metrics", OF_SPEC],
    ),
    "requests are missing": (
        autoscaler(ABLE, NO_REQUEST),
        [workload("Deployment", "web")],
        [
            f"{NO_SCALE}FailedGetResourceMetric: {NO_REQUEST['message']}",
            "- kubectl -n default set resources deployment/web --requests=cpu=100m",
            OF_SPEC,
        ],
    ),
    "requests of what does not exist": (
        autoscaler(ABLE, NO_REQUEST),
        [],
        [
            f"{NO_SCALE}FailedGetResourceMetric: {NO_REQUEST['message']}",
            "- Give the containers requests of cpu.",
            OF_SPEC,
        ],
    ),
    "another one scales the same pods": (
        autoscaler(ABLE, AMBIGUOUS),
        [autoscaler(name="b"), autoscaler(name="c")],
        [
            f"{NO_SCALE}AmbiguousSelector: {AMBIGUOUS['message']}",
            "- kubectl -n default delete horizontalpodautoscaler/b",
            OF_SPEC,
            "@ horizontalpodautoscaler/b spec",
        ],
    ),
    "an object of the namespace is no other autoscaler": (
        autoscaler(ABLE, unable("no metrics of default/b", "FailedGetObjectMetric", "ScalingActive")),
        [autoscaler(name="b")],
        [f"{NO_SCALE}FailedGetObjectMetric: no metrics of default/b", OF_SPEC],
    ),
    "an autoscaler of another namespace is no other one": (
        autoscaler(ABLE, unable("HPAs: [default/web other/b]", "AmbiguousSelector", "ScalingActive")),
        [autoscaler(name="b")],
        [f"{NO_SCALE}AmbiguousSelector: HPAs: [default/web other/b]", OF_SPEC],
    ),
    "at its maximum": (
        autoscaler(ACTIVE, limited("TooManyReplicas"), currentReplicas=2, desiredReplicas=2),
        [],
        [
            "Explained: it wants more replicas than maxReplicas, TooManyReplicas: m",
            """- kubectl -n default patch horizontalpodautoscaler/web -p '{"spec":{"maxReplicas":4}}'""",
            "@ horizontalpodautoscaler/web spec.maxReplicas",
        ],
    ),
    **{
        f"step by step, {reason}": (
            autoscaler(ACTIVE, limited(reason), currentReplicas=1, desiredReplicas=2),
            [],
            [
                f"Explained: it scales step by step, as fast as spec.behavior or its default allows, {reason}: m",
                "- Change the policies of spec.behavior.",
                "@ horizontalpodautoscaler/web spec.behavior",
            ],
        )
        for reason in ("ScaleUpLimit", "ScaleDownLimit")
    },
    "not there yet": (
        autoscaler(ACTIVE, limited("TooFewReplicas"), currentReplicas=3, desiredReplicas=2),
        [],
        ["Unknown: 3 replicas are there and 2 are wanted; the scaling goes on"],
    ),
    "at its minimum": (
        autoscaler(ACTIVE, limited("TooFewReplicas"), currentReplicas=1, desiredReplicas=1),
        [],
        ["NoProblem: it has 1 replicas, its minimum, and its metrics ask for fewer"],
    ),
    **{
        f"stable, {reason}": (
            autoscaler(
                condition("AbleToScale", "True", reason, "m"), ACTIVE, currentReplicas=2, desiredReplicas=2
            ),
            [],
            [f"NoProblem: it keeps 2 replicas for now, {reason}: m"],
        )
        for reason in ("ScaleDownStabilized", "ScaleUpStabilized")
    },
    "limited by something else": (
        autoscaler(ABLE, ACTIVE, limited("Other"), currentReplicas=2, desiredReplicas=2),
        [],
        ["Unknown: its replicas are limited, Other: m"],
    ),
    "not limited": (
        autoscaler(
            ABLE, ACTIVE, limited("DesiredWithinRange", "False"), currentReplicas=2, desiredReplicas=2
        ),
        [],
        ["NoProblem: its metrics ask for the 2 replicas that are there"],
    ),
}

# --- definitions

NAMES = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList", "shortNames": ["sh"]}


def definition(*conditions, name="shops.example.com", group="example.com", accepted=None, **metadata):
    return thing(
        "CustomResourceDefinition",
        name,
        api_version="apiextensions.k8s.io/v1",
        namespace="",
        metadata=metadata,
        spec={"group": group, "names": NAMES},
        status={"conditions": [*conditions], "acceptedNames": accepted or {}},
    )


def other_definition(name="other.example.com", group="example.com", **accepted):
    return definition(name=name, group=group, accepted=accepted)


REFUSED_NAMES = condition("NamesAccepted", "False", "ShortNamesConflict", "m")
ACCEPTED = condition("NamesAccepted", "True")
NOT_ACCEPTED = [
    "Explained: its names are not accepted, ShortNamesConflict: m",
    "- Choose other names in spec.names, or another group.",
    "@ customresourcedefinition/shops.example.com spec.names",
]

DEFINITIONS = {
    "new": (definition(), [], ["Unknown: its controller has not looked at it yet"]),
    "served": (definition(ACCEPTED, condition("Established", "True")), [], ["NoProblem: its kind is served"]),
    "not served": (
        definition(ACCEPTED, condition("Established", "False", "Installing", "m")),
        [],
        ["Explained: its kind is not served, Installing: m"],
    ),
    "its names belong to nobody": (
        definition(REFUSED_NAMES, condition("Established", "True"), accepted={"plural": "shops"}),
        [
            other_definition(group="example.org", kind="Shop"),
            other_definition(kind="Bar", plural="bars", shortNames=["b"]),
        ],
        NOT_ACCEPTED,
    ),
    **{
        f"its {field} is that of another one": (
            definition(REFUSED_NAMES),
            [other_definition(**{field: value})],
            [
                f"{NOT_ACCEPTED[0]}: the CustomResourceDefinition other.example.com has the name",
                NOT_ACCEPTED[1],
                "- kubectl delete customresourcedefinition/other.example.com",
                NOT_ACCEPTED[2],
                "@ customresourcedefinition/other.example.com spec.names",
            ],
        )
        for field, value in NAMES.items()
    },
}

# --- certificates


def signing_request(*conditions, signer="example.com/a", **status):
    return thing(
        "CertificateSigningRequest",
        api_version="certificates.k8s.io/v1",
        namespace="",
        spec={"signerName": signer, "username": "ada"},
        status={"conditions": [*conditions], **status},
    )


APPROVED = condition("Approved", "True")
CERTIFICATES = {
    "issued": (signing_request(APPROVED, certificate="x"), [], ["NoProblem: the certificate is issued"]),
    "denied": (
        signing_request(condition("Denied", "True", "No", "m")),
        [],
        ["Explained: it was denied, No: m"],
    ),
    "failed": (
        signing_request(APPROVED, condition("Failed", "True", "Bad", "m")),
        [],
        ["Explained: it was failed, Bad: m"],
    ),
    "new": (
        signing_request(),
        [],
        [
            "Explained: nobody has approved it",
            "- kubectl certificate approve web",
            "- kubectl certificate deny web",
        ],
    ),
    "of a signer that is no part of Kubernetes": (
        signing_request(APPROVED),
        [],
        [
            "Explained: it is approved, and the signer example.com/a has not signed it: no controller of Kubernetes does",
            "- Start the program that signs for example.com/a.",
        ],
    ),
    "of a signer of Kubernetes": (
        signing_request(APPROVED, signer="kubernetes.io/kube-apiserver-client"),
        [],
        ["Unknown: it is approved, and the signer kubernetes.io/kube-apiserver-client has not signed it"],
    ),
}

# --- what is deleted


def deleted(kind="Service", *finalizers, name="web", spec=(), status=(), **fields):
    metadata = {**DELETED, "finalizers": [*finalizers], **fields.pop("metadata", {})}
    return thing(kind, name, metadata=metadata, spec=dict(spec), status=dict(status), **fields)


def of_owner(name="child", *, blocks=True, owner="uid-web", metadata=()):
    reference = {"kind": "Service", "name": "web", "uid": owner, "blockOwnerDeletion": blocks}
    return thing("ConfigMap", name, metadata={"ownerReferences": [reference], **dict(metadata)})


def uses_claim(name, claim="web", phase="Running"):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return pod_of(name, status={"phase": phase}, volumes=volumes)


def waits(what, finalizer, cause, *remedies, state="Explained"):
    return [
        f"{state}: it is being deleted and waits for its finalizer {finalizer}: {cause}",
        *remedies,
        f"@ {what} metadata.finalizers",
        f"@ {what} metadata.deletionTimestamp",
    ]


def removal(what, position, finalizer):
    path = f"/metadata/finalizers/{position}"
    return (
        f"""- kubectl -n default patch {what} --type=json -p '[{{"op":"test","path":"{path}","value":"{finalizer}"}},"""
        f"""{{"op":"remove","path":"{path}"}}]'"""
    )


PVC, PV = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
CUSTOM = "customresourcecleanup.apiextensions.k8s.io"
MANAGED = {"manager": "operator", "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"a.b/c"': {}}}}}
FOREGROUND = deleted("Service", "foregroundDeletion")
CLAIM = deleted("PersistentVolumeClaim", PVC)
NO_BLOCKER = "the garbage collector deletes it when no dependent blocks it; none that you may list does"
UNUSED = "the claim is protected while pods use it; none that you may list does"
CLAIM_NAME = "persistentvolumeclaim/web"


def running_until(time, grace=30, field="containerStatuses"):
    metadata = {"deletionTimestamp": time, "deletionGracePeriodSeconds": grace, "finalizers": ["a.b/c"]}
    return pod_of(metadata=metadata, status={field: [{"name": "c", "state": {"running": {}}}]})


def definition_of(*, has_objects):
    return definition(deletionTimestamp="x", finalizers=[CUSTOM]), has_objects


FORCE = "- kubectl -n default delete pod/web --force --grace-period=0"
STILL = "Explained: its containers have until 2026-01-31T12:00:10Z to end, the grace period of 30 seconds"

DELETIONS = {
    "without a finalizer": (
        deleted(),
        [],
        ["Unknown: it is being deleted, has no finalizer, and is not gone yet"],
    ),
    "foreground: no dependent blocks it": (
        FOREGROUND,
        [of_owner(blocks=False), of_owner("b", owner="uid-other")],
        waits("service/web", "foregroundDeletion", NO_BLOCKER, state="Unknown"),
    ),
    "foreground: a dependent blocks it": (
        FOREGROUND,
        [of_owner()],
        waits(
            "service/web",
            "foregroundDeletion",
            "1 dependent with blockOwnerDeletion must go first, such as configmap/child",
            "- mockube why configmap/child -n default",
        ),
    ),
    "orphan": (
        deleted("Service", "orphan"),
        [],
        waits(
            "service/web",
            "orphan",
            "the garbage collector removes it from the owners of its dependents, and has not finished",
            state="Unknown",
        ),
    ),
    "claim: pods use it": (
        CLAIM,
        [uses_claim("a"), uses_claim("b"), uses_claim("c", "other"), uses_claim("d", phase="Failed")],
        waits(CLAIM_NAME, PVC, "2 pods use the claim, such as a, b", "- kubectl -n default delete pod/a"),
    ),
    "claim: no pod uses it": (
        CLAIM,
        [uses_claim("c", "other"), uses_claim("d", phase="Succeeded")],
        waits(CLAIM_NAME, PVC, UNUSED, state="Unknown"),
    ),
    "volume: bound": (
        deleted(
            "PersistentVolume",
            PV,
            namespace="",
            spec={"claimRef": {"namespace": "a", "name": "b"}},
            status={"phase": "Bound"},
        ),
        [],
        waits("persistentvolume/web", PV, "the volume is bound to persistentvolumeclaim/b in a"),
    ),
    "volume: released": (
        deleted("PersistentVolume", PV, namespace="", status={"phase": "Released"}),
        [],
        waits(
            "persistentvolume/web",
            PV,
            "the volume is protected while it is bound; its phase is Released",
            state="Unknown",
        ),
    ),
    "pod of a Job": (
        deleted("Pod", "batch.kubernetes.io/job-tracking"),
        [],
        waits(
            "pod/web",
            "batch.kubernetes.io/job-tracking",
            "the Job controller has not counted the pod yet",
            state="Unknown",
        ),
    ),
    "load balancer": (
        deleted("Service", "service.kubernetes.io/load-balancer-cleanup"),
        [],
        waits(
            "service/web",
            "service.kubernetes.io/load-balancer-cleanup",
            "the cloud's controller of load balancers has not removed the load balancer",
            state="Unknown",
        ),
    ),
    "the finalizer of an operator": (
        deleted("Service", "a.b/c"),
        [],
        waits(
            "service/web",
            "a.b/c",
            "the controller of a.b/c has not removed it; why is not recorded",
            removal("service/web", 0, "a.b/c"),
            state="Unknown",
        ),
    ),
    "the finalizer that a manager has set": (
        deleted("Service", "a.b/c", metadata={"managedFields": [{"manager": "x"}, MANAGED]}),
        [],
        waits(
            "service/web",
            "a.b/c",
            "the controller of a.b/c, which operator has set, has not removed it; why is not recorded",
            removal("service/web", 0, "a.b/c"),
            state="Unknown",
        ),
    ),
    "the finalizer of a simulated operator": (
        deleted("Service", "a.b/c"),
        [event(deleted(), "NotFinalized", "its operator is simulated")],
        waits(
            "service/web",
            "a.b/c",
            "its operator is simulated",
            removal("service/web", 0, "a.b/c"),
        ),
    ),
    "of two finalizers, the one that is known first": (
        deleted("PersistentVolumeClaim", "a.b/c", PVC),
        [uses_claim("a")],
        waits(
            CLAIM_NAME,
            f"a.b/c, {PVC}",
            "1 pod uses the claim, such as a",
            "- kubectl -n default delete pod/a",
            removal(CLAIM_NAME, 0, "a.b/c"),
        ),
    ),
    "with its namespace": (
        deleted("PersistentVolumeClaim", PVC),
        [deleted("Namespace", name="default", namespace="")],
        [*waits(CLAIM_NAME, PVC, UNUSED, state="Unknown"), "@ namespace/default metadata.deletionTimestamp"],
    ),
    "without its namespace": (
        deleted("PersistentVolumeClaim", PVC),
        [thing("Namespace", "default", namespace="")],
        waits(CLAIM_NAME, PVC, UNUSED, state="Unknown"),
    ),
    **{
        f"pod: containers of {field} end": (
            running_until("2026-01-31T12:00:10Z", field=field),
            [],
            [STILL, FORCE],
        )
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    },
    "pod: its grace period has ended": (
        running_until("2026-01-31T11:59:59Z", 5),
        [],
        [
            "Unknown: its grace period ended at 2026-01-31T11:59:59Z, and its kubelet has not reported the end of its containers",
            FORCE,
        ],
    ),
    "pod: its containers have ended, and a finalizer remains": (
        deleted("Pod", "a.b/c", status={"containerStatuses": [{"state": {"terminated": {}}}]}),
        [],
        waits(
            "pod/web",
            "a.b/c",
            "the controller of a.b/c has not removed it; why is not recorded",
            removal("pod/web", 0, "a.b/c"),
            state="Unknown",
        ),
    ),
}

# --- namespaces that are deleted

FAILURE = condition("NamespaceDeletionDiscoveryFailure", "True", "x", "no discovery")
CONTENT_FAILURE = condition("NamespaceDeletionContentFailure", "False", "x", "content")


def namespace(*conditions, finalizers=(), spec_finalizers=("kubernetes",)):
    return thing(
        "Namespace",
        "shop",
        namespace="",
        metadata={**DELETED, "finalizers": [*finalizers]},
        spec={"finalizers": [*spec_finalizers]},
        status={"conditions": [*conditions]},
    )


def inside(kind="Service", name="a", *finalizers, is_deleted=True):
    metadata = {"finalizers": [*finalizers], **(DELETED if is_deleted else {})}
    return thing(kind, name, namespace="shop", metadata=metadata, spec={})


NAMESPACES = {
    "objects wait for finalizers": (
        namespace(FAILURE),
        [
            inside("Service", "a", "a.b/c"),
            inside("ConfigMap", "b", "b.c/d", "a.b/c"),
            inside("Secret", "c"),
            inside("Secret", "d", "a.b/c", is_deleted=False),
        ],
        [
            "Explained: 2 objects in it wait for finalizers (a.b/c, b.c/d), such as service/a",
            "- mockube why service/a -n shop",
            removal("service/a", 0, "a.b/c").replace("default", "shop"),
            "@ service/a metadata.finalizers",
            "@ namespace/shop metadata.deletionTimestamp",
            "@ configmap/b metadata.finalizers",
        ],
    ),
    "its contents cannot be deleted": (
        namespace(CONTENT_FAILURE, FAILURE),
        [inside()],
        [
            "Explained: its contents cannot be deleted: no discovery",
            "@ namespace/shop metadata.deletionTimestamp",
        ],
    ),
    "objects are left": (
        namespace(condition("NamespaceContentRemaining", "True")),
        [inside(), inside(name="b", is_deleted=False)],
        ["Unknown: 2 objects in it are left, and none has a finalizer"],
    ),
    "its own finalizer is left": (
        namespace(finalizers=["orphan"]),
        [],
        waits(
            "namespace/shop",
            "orphan",
            "the garbage collector removes it from the owners of its dependents, and has not finished",
            state="Unknown",
        ),
    ),
    "nothing is left": (
        namespace(),
        [],
        ["Unknown: nothing that you may list is left in it; its spec.finalizers are kubernetes"],
    ),
    "no finalizer of its spec is left": (
        namespace(spec_finalizers=()),
        [],
        ["Unknown: nothing that you may list is left in it; its spec.finalizers are empty"],
    ),
}

ROWS = {
    f"{topic}: {name}": row
    for topic, table in (
        ("autoscaler", AUTOSCALERS),
        ("definition", DEFINITIONS),
        ("certificate", CERTIFICATES),
        ("deletion", DELETIONS),
        ("namespace", NAMESPACES),
    )
    for name, row in table.items()
}


def resource(obj):
    if obj["kind"] == "CertificateSigningRequest":
        return GroupResource("certificates.k8s.io", "certificatesigningrequests")
    return resource_of(obj)


@pytest.mark.parametrize(("obj", "objects", "lines"), ROWS.values(), ids=ROWS)
def test_object(obj, objects, lines):
    assert told(explain(resource(obj), obj, facts_of(obj, *objects))) == lines


@pytest.mark.parametrize(
    ("obj", "objects", "evidence"),
    [
        (
            deleted("Service", "a.b/c", metadata={"managedFields": [MANAGED]}),
            [],
            [
                "metadata.deletionTimestamp is 2026-01-31T11:59:50Z",
                "the field manager of the finalizer a.b/c is operator",
            ],
        ),
        (
            namespace(FAILURE, CONTENT_FAILURE),
            [inside("Service", "a", "a.b/c"), inside("Secret", "b"), inside("Secret", "c")],
            ["2 of kind Secret are left", "1 of kind Service are left", "no discovery"],
        ),
        (
            signing_request(APPROVED),
            [],
            ["signerName is example.com/a, by ada", "no message"],
        ),
        (definition(ACCEPTED), [], ["no message"]),
    ],
    ids=["manager", "contents", "signer", "no Established"],
)
def test_evidence(obj, objects, evidence):
    assert evidence_of(explain(resource(obj), obj, facts_of(obj, *objects))) == evidence


@pytest.mark.parametrize(
    ("dependent", "cause"),
    [
        (of_owner(), "is not being deleted yet"),
        (of_owner(metadata={**DELETED}), "is being deleted"),
        (
            of_owner(metadata={**DELETED, "finalizers": ["x", "y"]}),
            "is being deleted, and has the finalizers x, y",
        ),
    ],
    ids=["stays", "goes", "waits"],
)
def test_state_of_a_dependent(dependent, cause):
    (found,) = explain(resource_of(FOREGROUND), FOREGROUND, facts_of(FOREGROUND, dependent)).related
    assert found.cause == cause


SHOPS = GroupResource("example.com", "shops")
CLEANED = definition(**DELETED, finalizers=[CUSTOM])


@pytest.mark.parametrize(
    ("objects", "refused", "cause"),
    [
        ([], ["shops.example.com"], "its custom objects must go first, which you may not list"),
        ([], [], "its custom objects must go first, and none is left"),
        ([thing("Shop", "a", api_version="example.com/v1")], [], "1 custom objects must go first, such as a"),
    ],
    ids=["not readable", "none", "one"],
)
def test_definition_whose_objects_go_first(objects, refused, cause, monkeypatch):
    monkeypatch.setitem(GROUPS, "Shop", "example.com")
    found = explain(resource_of(CLEANED), CLEANED, facts_of(CLEANED, *objects, refused=refused))
    assert found.cause.endswith(cause)


# --- kinds that are not known


def custom(kind="Shop", api_version="example.com/v1", **fields):
    return thing(kind, api_version=api_version, **fields)


def owned(kind, api_version="v1", **fields):
    reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "web", "uid": "uid-web"}
    return thing(kind, "child", api_version=api_version, metadata={"ownerReferences": [reference]}, **fields)


SCALED_TO_ZERO = {"spec": {"replicas": 0, **TEMPLATE}, "status": {}}


@pytest.mark.parametrize(
    ("dependent", "cause"),
    [
        (
            owned(
                "Pod",
                spec={"nodeName": "a", "containers": [{"name": "c", "image": "nginx"}]},
                status=BAD_IMAGE,
            ),
            NO_IMAGE,
        ),
        (owned("Service", spec={}), "it has no selector, so nobody writes addresses"),
        (
            owned("PersistentVolumeClaim", spec={"volumeName": "x"}, status={"phase": "Lost"}),
            "x, does not exist any more",
        ),
        *(
            (
                owned(
                    kind,
                    "apps/v1",
                    spec=TEMPLATE,
                    status={"conditions": [condition("ReplicaFailure", "True", "x", "m")]},
                ),
                "0 of 1 pods exist: m",
            )
            for kind in ("ReplicaSet", "StatefulSet")
        ),
        (owned("Deployment", "apps/v1", spec={**TEMPLATE, "paused": True}), "the Deployment is paused"),
        (
            owned(
                "DaemonSet",
                "apps/v1",
                spec={"template": {"spec": {"nodeSelector": {"a": "b"}, "containers": []}}},
            ),
            "lacks a=b",
        ),
        (owned("Job", "batch/v1", spec={"suspend": True, **TEMPLATE}), "the Job is suspended"),
    ],
    ids=[
        "Pod",
        "Service",
        "PersistentVolumeClaim",
        "ReplicaSet",
        "StatefulSet",
        "Deployment",
        "DaemonSet",
        "Job",
    ],
)
def test_dependent_of_an_unknown_kind_is_explained(dependent, cause):
    obj = custom(status={})
    found = explain(SHOPS, obj, facts_of(obj, node_of(), owned("ConfigMap"), dependent))
    assert found.cause.startswith("1 of its dependents are not as they should be, such as")
    assert cause in found.cause


WARNING = {"type": "Warning"}


@pytest.mark.parametrize(
    ("obj", "events", "line"),
    [
        (custom(), [("NotReconciled", {})], "Explained: m"),
        (
            custom(),
            [("Failed", WARNING)],
            "Explained: it has no status, and no program that could reconcile it watches",
        ),
        (
            custom(api_version="batch.k8s.io/v1"),
            [],
            "Unknown: mockube knows nothing of objects of this kind; it has no conditions",
        ),
        (custom(api_version="v1"), [("Failed", {"type": "Normal"})], "it has no conditions"),
        (custom(api_version="v1"), [("Failed", WARNING)], "the conditions and Events are the evidence"),
        (custom(status={}), [], "it has no conditions"),
        (custom(status={"conditions": ["x"]}), [], "it has no conditions"),
        (custom(status={"conditions": [ACTIVE]}), [], "the conditions and Events are the evidence"),
        (
            custom(metadata={"creationTimestamp": "2026-01-31T11:59:55Z"}),
            [],
            "Explained: it has no status, and no program",
        ),
        (
            custom(metadata={"creationTimestamp": "2026-01-31T11:59:56Z"}),
            [],
            "Unknown: it has no status yet, and was created just now",
        ),
    ],
    ids=[
        "not reconciled",
        "without status",
        "own group",
        "normal Event",
        "warning",
        "empty status",
        "no condition",
        "condition",
        "old",
        "young",
    ],
)
def test_unknown_kind(obj, events, line):
    about = [{**event(obj, reason, "m"), **fields} for reason, fields in events]
    found = explain(GroupResource(obj["apiVersion"].rpartition("/")[0], "shops"), obj, facts_of(obj, *about))
    assert line in told(found)[0]
    assert ("m" in evidence_of(found)) is any(each != ("Failed", {"type": "Normal"}) for each in events)
