"""What is said of claims in each state in which they are not bound."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import event, facts_of, pod_of, resource_of, thing
from tests.support.told import evidence_of, told

SELECTED = {"annotations": {"volume.kubernetes.io/selected-node": "a"}}
OWN = {"namespace": "default", "name": "data"}


def claim(phase="Pending", *, metadata=(), **spec):
    spec = {"resources": {"requests": {"storage": "2Gi"}}, **spec}
    return thing("PersistentVolumeClaim", "data", metadata=metadata, spec=spec, status={"phase": phase})


def storage_class(provisioner="a.b/c", mode="Immediate", *, is_default=False):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    fields = {"provisioner": provisioner, "volumeBindingMode": mode, "metadata": {"annotations": annotations}}
    return thing("StorageClass", "fast", api_version="storage.k8s.io/v1", namespace="", **fields)


def volume(size="1Gi", of_class="fast", **spec):
    spec = {"capacity": {"storage": size}, "storageClassName": of_class, **spec}
    return thing("PersistentVolume", "disk", namespace="", spec=spec)


def user(name, node=None, of="data"):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": of}}]
    return pod_of(name, nodeName=node, volumes=volumes)


FAST = {"storageClassName": "fast"}
NO_CLASS = [
    "@ storageclass/fast",
    "@ persistentvolumeclaim/data spec.storageClassName",
]
CREATE = "- Create a PersistentVolume of that class with at least 2Gi."
LARGE = "1 free PersistentVolumes of its class are large enough and have its access modes; their labels or nodes may not fit"
NO_DEFAULT = "the claim names no StorageClass, and there is no default one; "
NEW_CLAIM = "- Name a StorageClass in a new claim, or make one the default."
NOT_MADE = "Unknown: the provisioner a.b/c has not made a volume: it does not run, or has not finished"
LAZY = storage_class(mode="WaitForFirstConsumer")
NAMED = "the PersistentVolume disk, which it names, "
NO_USER = [
    "Explained: no pod uses the claim: the StorageClass fast binds a claim when a pod that uses it is scheduled",
    "- Create a pod that uses the claim.",
]

CLAIMS = {
    "bound": (claim("Bound", volumeName="disk"), [], ["NoProblem: the claim is bound to disk"]),
    "lost with its volume": (
        claim("Lost", volumeName="disk"),
        [],
        ["Explained: the volume of the claim, disk, does not exist any more", "@ persistentvolume/disk"],
    ),
    "lost to another claim": (
        claim("Lost", volumeName="disk"),
        [volume(), event(claim(), "ClaimMisbound", "two claims")],
        ["Explained: the claim is not bound any more: two claims"],
    ),
    "lost for an unknown cause": (
        claim("Lost", volumeName="disk"),
        [volume(), event(claim(), "ClaimLost", "lost")],
        ["Unknown: the claim is not bound any more to its volume, disk; why is not recorded"],
    ),
    "its volume does not exist": (
        claim(volumeName="disk"),
        [],
        [f"Explained: {NAMED}does not exist", "@ persistentvolume/disk"],
    ),
    "its volume is that of a claim of another namespace": (
        claim(volumeName="disk"),
        [volume(claimRef={**OWN, "namespace": "other"})],
        [f"Explained: {NAMED}is that of the claim other/data"],
    ),
    "its volume is that of an earlier claim": (
        claim(volumeName="disk"),
        [volume(claimRef={**OWN, "uid": "old"})],
        [f"Explained: {NAMED}is that of a claim of the same name, which existed before"],
    ),
    **{
        f"its volume does not fit, {reason}": (
            claim(volumeName="disk"),
            [volume(claimRef=OWN), event(claim(), reason, "m")],
            [f"Explained: {NAMED}does not fit: m"],
        )
        for reason in ("VolumeMismatch", "ClaimMisbound")
    },
    **{
        f"its volume waits, {name}": (
            claim(volumeName="disk"),
            [volume(**spec)],
            [f"Unknown: {NAMED}is not bound to it yet"],
        )
        for name, spec in (
            ("free", {}),
            ("reserved", {"claimRef": OWN}),
            ("its own", {"claimRef": {**OWN, "uid": "uid-data"}}),
        )
    },
    "no class, and a default one that came later": (
        claim(),
        [storage_class(is_default=True)],
        [
            "Unknown: the claim was made before the default StorageClass fast was there, and has not got it yet"
        ],
    ),
    "no class, no default one, no volume": (
        claim(),
        [storage_class(), volume("4Gi")],
        [f"Explained: {NO_DEFAULT}no free PersistentVolume has no class", NEW_CLAIM],
    ),
    "no class, no default one, a volume": (
        claim(),
        [volume("2Gi", "")],
        [f"Unknown: {NO_DEFAULT}{LARGE}", NEW_CLAIM],
    ),
    "the empty class": (
        claim(storageClassName=""),
        [storage_class(is_default=True), volume("4Gi")],
        ["Explained: no free PersistentVolume has no class", CREATE],
    ),
    "a class that does not exist": (
        claim(**FAST),
        [],
        [
            "Explained: the StorageClass fast does not exist, and no free PersistentVolume has the class 'fast'",
            "- Create the StorageClass fast.",
            CREATE,
            *NO_CLASS,
        ],
    ),
    "a class that does not exist, and a volume that has it": (
        claim(**FAST),
        [volume("4Gi")],
        [f"Unknown: {LARGE}"],
    ),
    "a class that does not exist, and one of a similar name": (
        claim(**FAST),
        [thing("StorageClass", "fastt", api_version="storage.k8s.io/v1", namespace="")],
        [
            "Explained: the StorageClass fast does not exist, and no free PersistentVolume has the class 'fast'",
            "- Name one that exists, such as fastt, in a new claim.",
            "- Create the StorageClass fast.",
            CREATE,
            *NO_CLASS,
        ],
    ),
    "a volume with other access modes": (
        claim(accessModes=["ReadWriteMany"], **FAST),
        [volume("4Gi", accessModes=["ReadWriteOnce"])],
        [
            "Explained: the PersistentVolume disk has the access modes ReadWriteOnce, and the claim needs ReadWriteMany",
            """- kubectl patch persistentvolume/disk --type=merge -p '{"spec":{"accessModes":["ReadWriteMany"]}}'""",
            "- Or create the claim anew with ReadWriteOnce.",
            "@ persistentvolumeclaim/data spec.accessModes",
            "@ persistentvolume/disk spec.accessModes",
        ],
    ),
    "a volume of another claim is not free": (
        claim(**FAST),
        [storage_class("kubernetes.io/no-provisioner"), volume("4Gi", claimRef={"name": "x"})],
        ["Explained: no free PersistentVolume has the class 'fast'", CREATE],
    ),
    "volumes are too small": (
        claim(**FAST),
        [storage_class("kubernetes.io/no-provisioner"), volume("2047Mi")],
        ["Explained: none of 1 free PersistentVolumes of its class has 2Gi", CREATE],
    ),
    "the provisioner fails": (
        claim(**FAST),
        [storage_class(), event(claim(), "ProvisioningFailed", "no space")],
        ["Explained: a volume cannot be provisioned: no space"],
    ),
    "the provisioner has not finished": (claim(**FAST), [storage_class()], [NOT_MADE]),
    "no pod uses it": (claim(**FAST), [LAZY, user("a", of="other")], NO_USER),
    "the pod that uses it has no node": (
        claim(**FAST),
        [LAZY, user("a", "x"), user("b"), user("c")],
        [
            "Explained: the claim is bound when the pod b is scheduled, which it is not",
            "- mockube why pod/b -n default",
        ],
    ),
    "pods that use it have nodes": (
        claim(**FAST),
        [LAZY, user("a", "x")],
        [
            "Unknown: pods such as a use the claim and have nodes, and the scheduler has selected no node for it"
        ],
    ),
    "a node is selected for it": (claim(**FAST, metadata=SELECTED), [LAZY], [NOT_MADE]),
}


@pytest.mark.parametrize(("obj", "objects", "lines"), CLAIMS.values(), ids=CLAIMS)
def test_claim(obj, objects, lines):
    assert told(explain(resource_of(obj), obj, facts_of(obj, *objects))) == lines


CLASSES, VOLUMES = "storageclasses.storage.k8s.io", "persistentvolumes"
NO_VOLUMES = "it needs a PersistentVolume that fits, which you may not list"


@pytest.mark.parametrize(
    ("obj", "objects", "refused", "cause"),
    [
        (
            claim(),
            [],
            CLASSES,
            "the claim names no StorageClass; whether there is a default one you may not list",
        ),
        (claim(**FAST), [], CLASSES, "the claim waits for the StorageClass fast, which you may not read"),
        (
            claim(**FAST),
            [LAZY],
            "pods",
            "the StorageClass fast waits for a pod of the claim, and you may not list pods",
        ),
        (claim(storageClassName=""), [], VOLUMES, NO_VOLUMES),
        (
            claim("Lost", volumeName="disk"),
            [],
            VOLUMES,
            "the claim is not bound any more to its volume, disk; why is not recorded",
        ),
        (claim(volumeName="disk"), [], VOLUMES, f"{NAMED}is not bound to it yet"),
    ],
    ids=["default class", "class", "pods", "volumes", "lost volume", "named volume"],
)
def test_claim_of_which_not_all_may_be_read(obj, objects, refused, cause):
    found = explain(resource_of(obj), obj, facts_of(obj, *objects, refused=(refused,)))
    assert (found.state, found.cause) == ("Unknown", cause)


@pytest.mark.parametrize(
    "reason",
    [
        "ProvisioningFailed",
        "FailedBinding",
        "VolumeMismatch",
        "ClaimMisbound",
        "ClaimLost",
        "ExternalProvisioning",
        "WaitForFirstConsumer",
        "WaitForPodScheduled",
    ],
)
def test_event_of_the_binding_is_evidence(reason):
    obj = claim(**FAST)
    found = explain(
        resource_of(obj), obj, facts_of(obj, LAZY, event(obj, reason, "m"), event(obj, "Other", "n"))
    )
    assert evidence_of(found) == [
        "provisioner a.b/c, volumeBindingMode WaitForFirstConsumer",
        "the phase is Pending",
        "m",
    ]
