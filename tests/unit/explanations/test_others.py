"""Explanations of claims, Services, autoscalers, CertificateSigningRequests and custom objects."""

import pytest

from mockube.apimachinery.groups import NODES, GroupResource
from mockube.explanations.catalog import explain
from mockube.explanations.facts import Member
from tests.support.explained import (
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
    with_state,
)

SHOPS = GroupResource("example.com", "shops")


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


# --- claims


def claim(phase="Pending", **spec):
    spec = {"resources": {"requests": {"storage": "2Gi"}}, **spec}
    return thing("PersistentVolumeClaim", "data", spec=spec, status={"phase": phase})


def storage_class(name="fast", **fields):
    return thing("StorageClass", name, api_version="storage.k8s.io/v1", namespace="", **fields)


def volume(size="1Gi", **spec):
    spec = {"capacity": {"storage": size}, "storageClassName": "fast", **spec}
    return thing("PersistentVolume", "disk", namespace="", spec=spec)


@pytest.mark.parametrize(
    ("of_claim", "objects", "state", "cause"),
    [
        (claim("Bound", volumeName="disk"), (), "NoProblem", "the claim is bound to disk"),
        (claim("Lost", volumeName="disk"), (), "Explained", "disk, does not exist any more"),
        (
            claim(volumeName="disk"),
            (),
            "Explained",
            "the PersistentVolume disk, which it names, does not exist",
        ),
        (
            claim(volumeName="disk"),
            (volume(claimRef={"namespace": "a", "name": "b"}),),
            "Explained",
            "is that of the claim a/b",
        ),
        (claim(), (), "Explained", "names no StorageClass, and there is no default one"),
        (claim(storageClassName="fast"), (), "Explained", "the StorageClass fast does not exist"),
        (
            claim(storageClassName="fast"),
            (storage_class(provisioner="kubernetes.io/no-provisioner"), volume()),
            "Explained",
            "none of 1 free PersistentVolumes of its class has 2Gi",
        ),
        (
            claim(storageClassName="fast"),
            (storage_class(provisioner="kubernetes.io/no-provisioner"), volume("4Gi")),
            "Unknown",
            "their labels or nodes may not fit",
        ),
        (
            claim(storageClassName="fast"),
            (storage_class(provisioner="a.b/c"),),
            "Unknown",
            "the provisioner a.b/c has not made a volume",
        ),
        (
            claim(storageClassName="fast"),
            (storage_class(provisioner="a.b/c", volumeBindingMode="WaitForFirstConsumer"),),
            "Explained",
            "no pod uses the claim",
        ),
    ],
)
def test_claims(of_claim, objects, state, cause):
    found = explained(of_claim, *objects)
    assert (found.state, cause in found.cause) == (state, True), found.cause


def test_volume_that_names_the_claim_and_is_not_bound_to_it():
    waiting = claim(volumeName="disk")
    own = {"namespace": "default", "name": "data"}
    assert explained(waiting, volume(claimRef=own)).state == "Unknown"
    old = explained(waiting, volume(claimRef={**own, "uid": "another"}))
    assert old.cause.endswith("is that of a claim of the same name, which existed before")
    mismatch = event(waiting, "VolumeMismatch", "requested volume size is larger")
    assert explained(waiting, volume(), mismatch).cause.endswith(
        "does not fit: requested volume size is larger"
    )


def test_lost_claim_whose_volume_exists():
    lost = claim("Lost", volumeName="disk")
    assert explained(lost, volume()).state == "Unknown"
    misbound = event(lost, "ClaimMisbound", "Two claims are bound to the same volume")
    assert explained(lost, volume(), misbound).cause.endswith("Two claims are bound to the same volume")


@pytest.mark.parametrize("name", ["fast", None])
def test_claim_without_class_is_not_explained_while_a_volume_may_fit(name):
    waiting = claim(**({"storageClassName": name} if name else {}))
    assert explained(waiting, volume("4Gi", storageClassName=name or "")).state == "Unknown"


def test_claim_whose_provisioner_fails():
    waiting = claim(storageClassName="fast")
    failed = event(waiting, "ProvisioningFailed", "no space")
    assert (
        explained(waiting, storage_class(provisioner="a.b/c"), failed).cause
        == "a volume cannot be provisioned: no space"
    )


def test_claim_that_waits_for_a_pod():
    waiting = claim(storageClassName="fast")
    lazy = storage_class(provisioner="a.b/c", volumeBindingMode="WaitForFirstConsumer")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    found = explained(waiting, lazy, pod_of(nodeName=None, volumes=volumes))
    assert found.cause == "the claim is bound when the pod web is scheduled, which it is not"
    assert found.remedies[0].command == "mockube why pod/web -n default"
    assert explained(waiting, lazy, pod_of(volumes=volumes)).state == "Unknown"


def test_claim_that_may_not_be_explained():
    waiting = claim(storageClassName="fast")
    assert explained(waiting, storage_class(), refused=("storageclasses.storage.k8s.io",)).state == "Unknown"


# --- Services


def service(**spec):
    ports = [{"port": 80, "targetPort": "http"}]
    return thing("Service", spec={"selector": {"app": "web"}, "ports": ports, **spec})


def endpoint_slice(*addresses):
    labels = {"kubernetes.io/service-name": "web"}
    endpoints = [{"addresses": [*addresses]}] if addresses else []
    return thing(
        "EndpointSlice", api_version="discovery.k8s.io/v1", metadata={"labels": labels}, endpoints=endpoints
    )


def labelled(value, **fields):
    return pod_of("p", metadata={"labels": {"app": value}}, **fields)


READY = {"phase": "Running", "conditions": [condition("Ready", "True")]}
HTTP = {"ports": [{"name": "http", "containerPort": 80}]}


def test_service_with_addresses():
    assert (
        explained(service(), endpoint_slice("10.0.0.1"), labelled("web", container=HTTP)).state == "NoProblem"
    )
    assert explained(service(type="ExternalName", externalName="x.y")).state == "NoProblem"
    balanced = explained(service(type="LoadBalancer"), endpoint_slice("10.0.0.1"))
    assert (balanced.state, "status.loadBalancer" in balanced.cause) == ("Unknown", True)


def test_service_whose_load_balancer_failed():
    balanced = service(type="LoadBalancer")
    failure = event(balanced, "SyncLoadBalancerFailed", "no address of 127.10.0.0/16 is left")
    found = explained(balanced, endpoint_slice("10.0.0.1"), failure)
    assert found.cause == "it has addresses, but no load balancer: no address of 127.10.0.0/16 is left"


def test_service_without_pods():
    found = explained(service(), labelled("wbe"))
    assert found.cause == (
        "no pod in default has the labels of its selector; nearest is pod/p: it has app=wbe, not app=web"
    )
    assert "app=wbe" in [each.text for each in found.evidence]
    assert found.remedies[0].command == "kubectl -n default set selector service web app=wbe"
    assert [(str(each.object), each.path) for each in found.origins] == [
        ("service/web", ("spec", "selector", "app")),
        ("pod/p", ("metadata", "labels", "app")),
    ]
    assert explained(service(), refused=("pods",)).state == "Unknown"
    assert explained(service(selector=None)).cause.startswith("it has no selector")


def test_service_whose_pods_are_not_ready():
    waiting = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
    found = explained(service(), labelled("web", status=waiting))
    assert found.cause.startswith("its pod is not ready; p: the image nginx")


def test_service_with_some_ready_pods():
    waiting = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
    pods = [labelled("web", status=waiting), labelled("web", status=READY, container=HTTP)]
    pods[1]["metadata"] = {**pods[1]["metadata"], "name": "q", "uid": "uid-q"}
    assert explained(service(), *pods).cause.startswith("1 ready pods have the labels of its selector")
    unread = explained(service(), *pods, refused=("endpointslices.discovery.k8s.io",))
    assert (unread.state, "which you may not list" in unread.cause) == ("Unknown", True)
    assert "no addresses" not in unread.cause


def test_service_whose_port_has_no_such_name():
    cause = "no container of its pods has a port named http, which is its targetPort"
    assert explained(service(), labelled("web", status=READY)).cause == cause
    assert explained(service(), labelled("web", status=READY), endpoint_slice("10.0.0.1")).cause == cause
    assert explained(service(), labelled("web", status=READY, container=HTTP)).state == "Unknown"


def test_endpoint_slice_is_explained_as_its_service():
    assert explained(endpoint_slice()).cause == "the Service web does not exist"
    assert "has the labels of its selector" in explained(endpoint_slice(), service()).cause


# --- autoscalers, CertificateSigningRequests, custom objects


def autoscaler(*conditions, **status):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return thing(
        "HorizontalPodAutoscaler",
        api_version="autoscaling/v2",
        spec={"scaleTargetRef": target, "maxReplicas": 2},
        status={"conditions": [*conditions], **status},
    )


SCALED = thing(
    "Deployment",
    api_version="apps/v1",
    spec={"template": {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}},
)


def test_autoscalers():
    failed = condition(
        "ScalingActive", "False", "FailedGetResourceMetric", "missing request for cpu in container c"
    )
    found = explained(autoscaler(failed), SCALED)
    assert found.cause == (
        "it does not scale Deployment web, FailedGetResourceMetric: missing request for cpu in container c"
    )
    assert found.remedies[0].command == "kubectl -n default set resources deployment/web --requests=cpu=100m"
    active = condition("ScalingActive", "True")
    limited = condition("ScalingLimited", "True", "TooManyReplicas", "more than the maximum")
    assert "TooManyReplicas" in explained(autoscaler(active, limited)).cause
    few = condition("ScalingLimited", "True", "TooFewReplicas", "less than the minimum")
    assert explained(autoscaler(active, few, currentReplicas=1, desiredReplicas=1)).state == "NoProblem"
    slow = condition("ScalingLimited", "True", "ScaleUpLimit", "faster than the maximum scale rate")
    rate = explained(autoscaler(active, slow, currentReplicas=1, desiredReplicas=4))
    assert rate.cause.startswith("it scales step by step, as fast as spec.behavior or its default allows")
    assert rate.remedies[0].text == "Change the policies of spec.behavior."
    stable = condition("AbleToScale", "True", "ScaleDownStabilized", "recent recommendations were higher")
    kept = explained(autoscaler(active, stable, currentReplicas=3, desiredReplicas=3))
    assert (kept.state, kept.cause.startswith("it keeps 3 replicas for now")) == ("NoProblem", True)
    assert explained(autoscaler(active, currentReplicas=2, desiredReplicas=2)).state == "NoProblem"
    assert explained(autoscaler(active, currentReplicas=1, desiredReplicas=2)).state == "Unknown"
    assert explained(autoscaler()).state == "Unknown"


def test_requests_that_an_autoscaler_needs():
    def remedy(resource):
        message = f"missing request for {resource} in container c of Pod web-1"
        failed = autoscaler(condition("ScalingActive", "False", "No", message))
        return explained(failed, SCALED).remedies[0]

    assert remedy("memory").command.endswith("--requests=memory=128Mi")
    assert remedy("example.com/gpu").command == ""


def signing_request(*conditions, signer="example.com/a", certificate=None):
    resource = GroupResource("certificates.k8s.io", "certificatesigningrequests")
    status = {"conditions": [*conditions], "certificate": certificate}
    obj = thing("CertificateSigningRequest", namespace="", spec={"signerName": signer}, status=status)
    return explain(resource, obj, facts_of())


def test_signing_requests():
    approved = condition("Approved", "True")
    assert signing_request().remedies[0].command == "kubectl certificate approve web"
    assert "no controller of Kubernetes does" in signing_request(approved).cause
    assert signing_request(approved, signer="kubernetes.io/kubelet-serving").state == "Unknown"
    assert signing_request(approved, certificate="x").state == "NoProblem"
    assert signing_request(condition("Denied", "True", "No", "why")).cause == "it was denied, No: why"


def custom(*objects, watchers=(), refused=(), **fields):
    obj = thing("Shop", "a", api_version="example.com/v1", **fields)
    return explain(
        SHOPS, obj, facts_of(obj, *(make(obj) for make in objects), watchers=watchers, refused=refused)
    )


def test_custom_objects():
    assert "nothing does, unless a program polls" in custom().cause
    assert custom(watchers=("shop-operator",)).cause == "it has no status, and shop-operator watches its kind"
    assert custom(watchers=("shop-operator",)).state == "Unknown"
    assert custom(refused=("shops.example.com",)).state == "Unknown"
    assert custom(metadata={"creationTimestamp": "2026-01-31T11:59:58Z"}).state == "Unknown"
    simulated = custom(lambda obj: event(obj, "NotReconciled", "its operator is simulated"))
    assert (simulated.state, simulated.cause) == ("Explained", "its operator is simulated")
    failing = custom(status={"conditions": [condition("Ready", "False", "No", "no database")]})
    assert (failing.state, failing.evidence[0].text) == ("Unknown", "no database")


def test_kinds_of_kubernetes_without_explanation():
    found = explained(thing("ConfigMap"))
    assert (found.state, found.cause) == (
        "Unknown",
        "mockube knows nothing of objects of this kind; it has no conditions",
    )


def test_causes_of_what_an_unknown_object_owns():
    obj = thing("Shop", "a", api_version="example.com/v1", status={})
    reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "a", "uid": "uid-a"}
    waiting = with_state({"waiting": {"reason": "ErrImagePull", "message": "not found"}})
    pod = pod_of(metadata={"ownerReferences": [reference]}, status=waiting)
    found = explain(SHOPS, obj, facts_of(obj, pod, node_of(), watchers=("shop-operator",)))
    assert found.state == "Unknown"
    assert found.cause.startswith(
        "1 of its dependents are not as they should be, such as pod/web: the image nginx"
    )
    assert found.remedies[0].command == "mockube why pod/web -n default"


@pytest.mark.parametrize(
    "status", ["x", {"conditions": "x"}, {"conditions": ["x"]}, {"conditions": [{"type": 1}]}, 1]
)
def test_fields_of_wrong_types_are_not_explained(status):
    obj = {**thing("Shop", "a", api_version="example.com/v1"), "status": status}
    assert explain(SHOPS, obj, facts_of(obj, watchers=("shop-operator",))).state == "Unknown"


@pytest.mark.parametrize("reason", ["VolumeMismatch", "FailedBinding", "ExternalProvisioning"])
def test_event_of_a_claim_is_evidence(reason):
    waiting = claim(storageClassName="fast")
    found = explained(waiting, storage_class(provisioner="a.b/c"), event(waiting, reason, "a reason"))
    assert "a reason" in [each.text for each in found.evidence]


def test_selector_that_a_deployment_does_not_match_is_changed_in_its_template():
    template = {"metadata": {"labels": {"app": "wbe"}}, "spec": {"containers": []}}
    selected = thing("Deployment", "shop", api_version="apps/v1", spec={"template": template})
    found = explained(service(), selected)
    assert [(str(each.object), each.path) for each in found.origins] == [
        ("service/web", ("spec", "selector", "app")),
        ("deployment/shop", ("spec", "template", "metadata", "labels", "app")),
    ]


def test_service_whose_workload_has_no_pods():
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    selected = thing(
        "ReplicaSet", "shop", api_version="apps/v1", spec={"replicas": 0, "template": template}, status={}
    )
    found = explained(service(), selected)
    assert found.cause.startswith("replicaset/shop, whose pods it selects, has none: ")


TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}


def test_node_with_a_taint_names_the_pods_that_wait_and_do_not_tolerate_it():
    toleration = [{"key": "team", "operator": "Exists"}]
    pods = pod_of("web", nodeName=None), pod_of("batch", nodeName=None, tolerations=toleration)
    node = node_of(taints=[TAINT])
    found = explain(NODES, node, facts_of(node, *pods))
    assert found.cause == (
        "the node is ready, and takes only pods that tolerate team=x:NoSchedule; 1 pod that waits for a node does not tolerate it"
    )
    assert [each.object.name for each in found.related] == ["web"]
    assert [(each.object.name, each.path) for each in found.origins] == [
        ("a", ("spec", "taints", Member("team")))
    ]
    assert [each.command for each in found.remedies] == ["kubectl taint nodes a team:NoSchedule-"]


def test_node_of_the_control_plane_has_its_taint_as_evidence_and_no_problem():
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    node = node_of(taints=[taint])
    found = explain(NODES, node, facts_of(node))
    assert (found.state, found.cause, found.remedies) == ("NoProblem", "the node is ready", ())
    assert "node-role.kubernetes.io/control-plane:NoSchedule" in [each.text for each in found.evidence]
