"""Admission of namespaces, storage, networks and certificates: what each plugin changes, and what it refuses."""

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mockube.component_base.clock import SteppedClock
from tests.support.server import pod_certificates
from tests.support.server.memory_api import ALICE, CORE, NODE, PODS, running_api

NAMESPACES, NODES = "/api/v1/namespaces", "/api/v1/nodes"
CLAIMS = f"{CORE}/persistentvolumeclaims"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CERTIFICATES = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BUNDLES = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles"
POD_CERTIFICATES = "v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1"


def named(name="a", **fields):
    return {"metadata": {"name": name}, **fields}


# --- namespaces


@pytest.mark.kills("admission without NamespaceLifecycle")
async def test_nothing_is_created_in_missing_or_terminating_namespace(api):
    answer = await api.create(f"{NAMESPACES}/none/configmaps", named())
    assert answer.refusal == (404, 'namespaces "none" not found')
    await api.create_all((NAMESPACES, named("ending")))
    await api.delete(f"{NAMESPACES}/ending")
    await api.settle()
    answer = await api.create(f"{NAMESPACES}/ending/configmaps", named())
    assert answer.refusal == (
        403,
        'configmaps "a" is forbidden: unable to create new content in namespace ending because it is being terminated',
    )


@pytest.mark.kills("admission without NamespaceLifecycle")
async def test_namespace_default_is_not_deleted(api):
    answer = await api.delete(CORE)
    assert answer.refusal == (403, 'namespaces "default" is forbidden: this namespace may not be deleted')
    assert "deletionTimestamp" not in (await api.stored(CORE))["metadata"]


@pytest.mark.kills("admission without NamespaceAutoProvision")
async def test_missing_namespace_is_created_with_its_first_object():
    async with running_api("--enable-admission-plugins=NamespaceAutoProvision") as api:
        assert (await api.create(f"{NAMESPACES}/fresh/configmaps", named())).code == 201
        assert (await api.stored(f"{NAMESPACES}/fresh"))["status"] == {"phase": "Active"}


@pytest.mark.kills("admission without NamespaceExists")
async def test_object_in_missing_namespace_is_not_found():
    flags = "--enable-admission-plugins=NamespaceExists", "--disable-admission-plugins=NamespaceLifecycle"
    async with running_api(*flags) as api:
        answer = await api.create(f"{NAMESPACES}/none/configmaps", named())
        assert answer.refusal == (404, 'namespaces "none" not found')
        assert await api.stored(f"{NAMESPACES}/none/configmaps/a") is None


# --- storage and networks


def claim(size="1Gi", **spec):
    resources = {"requests": {"storage": size}}
    return named("c", spec={"accessModes": ["ReadWriteOnce"], "resources": resources, **spec})


def default_class(key, **fields):
    return {"metadata": {"name": "std", "annotations": {key: "true"}}, **fields}


@pytest.mark.kills("admission without DefaultStorageClass")
async def test_claim_gets_default_storage_class(api):
    storage_class = default_class("storageclass.kubernetes.io/is-default-class", provisioner="x")
    await api.create_all((STORAGE_CLASSES, storage_class))
    await api.create(CLAIMS, claim())
    assert (await api.stored(f"{CLAIMS}/c"))["spec"]["storageClassName"] == "std"


@pytest.mark.kills("admission without StorageObjectInUseProtection")
async def test_claim_is_protected_while_it_is_in_use(api):
    await api.create(CLAIMS, claim())
    assert (await api.stored(f"{CLAIMS}/c"))["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


@pytest.mark.kills("admission without PersistentVolumeClaimResize")
async def test_claim_grows_only_if_its_class_allows_it(api):
    await api.create_all((STORAGE_CLASSES, named("std", provisioner="x")))
    await api.create(CLAIMS, claim(storageClassName="std", volumeName="v"))
    await api.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound"}})
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    answer = await api.patch(f"{CLAIMS}/c", patch)
    assert answer.code == 403
    assert "only dynamically provisioned pvc can be resized" in answer.message
    stored = await api.stored(f"{CLAIMS}/c")
    assert stored["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    await api.patch(f"{STORAGE_CLASSES}/std", {"allowVolumeExpansion": True})
    await api.settle()
    assert (await api.patch(f"{CLAIMS}/c", patch)).code == 200


@pytest.mark.kills("admission without DefaultIngressClass")
async def test_ingress_gets_default_class(api):
    network = "/apis/networking.k8s.io/v1"
    ingress_class = default_class(
        "ingressclass.kubernetes.io/is-default-class", spec={"controller": "example.com/x"}
    )
    await api.create_all((f"{network}/ingressclasses", ingress_class))
    backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    path = f"{network}/namespaces/default/ingresses"
    await api.create(path, named("i", spec=backend))
    assert (await api.stored(f"{path}/i"))["spec"]["ingressClassName"] == "std"


@pytest.mark.kills("admission without DenyServiceExternalIPs")
async def test_service_with_external_address_is_refused():
    async with running_api("--enable-admission-plugins=DenyServiceExternalIPs") as api:
        spec = {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}
        answer = await api.create(f"{CORE}/services", named("s", spec=spec))
        problem = 'services "s" is forbidden: Use of external IPs is denied by admission control'
        assert answer.refusal == (403, problem)
        assert await api.stored(f"{CORE}/services/s") is None


# --- nodes, owners, certificates: rights besides the right to write


@pytest.mark.kills("admission without NodeRestriction")
async def test_node_changes_neither_other_nodes_nor_their_pods():
    async with running_api("--enable-admission-plugins=NodeRestriction") as api:
        await api.create_all((NODES, named("n1")), (NODES, named("n2")))
        answer = await api.patch(f"{NODES}/n2", {"metadata": {"labels": {"a": "b"}}}, user=NODE)
        assert answer.refusal == (
            403,
            'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
        )
        assert (await api.patch(f"{NODES}/n1", {"metadata": {"labels": {"a": "b"}}}, user=NODE)).code == 200
        spec = {"nodeName": "n2", "containers": [{"name": "c", "image": "x"}]}
        await api.create_all((PODS, named("p", spec=spec)))
        answer = await api.delete(f"{PODS}/p", user=NODE)
        assert answer.refusal == (
            403,
            'pods "p" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
        )


@pytest.mark.kills("admission without OwnerReferencesPermissionEnforcement")
async def test_owner_is_blocked_only_by_user_that_may_set_its_finalizers():
    plugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "blockOwnerDeletion": True}
    tree = {"metadata": {"name": "a", "ownerReferences": [owner]}}
    async with running_api(plugin, modes=("RBAC",)) as api:
        answer = await api.create(f"{CORE}/configmaps", tree, user=ALICE)
        assert answer.code == 403
        assert "an ownerReference refers to a resource you can't set finalizers on" in answer.message
        assert await api.stored(f"{CORE}/configmaps/a") is None
        assert (await api.create(f"{CORE}/configmaps", tree)).code == 201


def signing_request(organization="users", signer="kubernetes.io/kube-apiserver-client"):
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    pem = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    return named("r", spec={"request": pem, "signerName": signer, "usages": ["client auth"]})


@pytest.mark.kills("admission without CertificateSubjectRestriction")
async def test_certificate_for_masters_is_refused(api):
    answer = await api.create(CERTIFICATES, signing_request("system:masters"))
    assert answer.code == 403
    problem = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    assert answer.message.endswith(problem)
    assert await api.stored(f"{CERTIFICATES}/r") is None


@pytest.mark.parametrize(
    ("subresource", "change", "problem"),
    [
        pytest.param(
            "approval",
            {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]},
            'user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"',
            marks=pytest.mark.kills("admission without CertificateApproval"),
            id="approval",
        ),
        pytest.param(
            "status",
            {"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]},
            'user not permitted to sign requests with signerName "kubernetes.io/kube-apiserver-client"',
            marks=pytest.mark.kills("admission without CertificateSigning"),
            id="status",
        ),
    ],
)
async def test_certificate_is_approved_and_signed_only_by_user_with_right_for_signer(
    subresource, change, problem
):
    async with running_api(modes=("RBAC",)) as api:
        await api.create_all((CERTIFICATES, signing_request()))
        path = f"{CERTIFICATES}/r/{subresource}"
        answer = await api.patch(path, {"status": change}, user=ALICE)
        assert answer.refusal == (
            403,
            f'certificatesigningrequests.certificates.k8s.io "r" is forbidden: {problem}',
        )
        assert not (await api.stored(f"{CERTIFICATES}/r"))["status"]
        assert (await api.patch(path, {"status": change})).code == 200


@pytest.mark.kills("admission without ClusterTrustBundleAttest")
async def test_trust_bundle_is_written_only_by_user_with_right_for_signer():
    bundle = {
        "metadata": {"name": "example.com:s:b"},
        "spec": {
            "signerName": "example.com/s",
            "trustBundle": pod_certificates.authority(SteppedClock().now()),
        },
    }
    async with running_api(f"--runtime-config={BUNDLES.split('/')[2]}/v1beta1=true", modes=("RBAC",)) as api:
        answer = await api.create(BUNDLES, bundle, user=ALICE)
        assert answer.code == 403
        assert answer.message.endswith('user not permitted to attest for signerName "example.com/s"')
        assert await api.stored(f"{BUNDLES}/example.com:s:b") is None
        assert (await api.create(BUNDLES, bundle)).code == 201


# --- plugins that no flag disables


@pytest.mark.kills("admission without RoleEscalation")
async def test_role_with_more_rights_than_its_author_has_is_refused():
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    role = named("r", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    async with running_api(modes=("RBAC",)) as api:
        answer = await api.create(path, role, user=ALICE)
        assert answer.code == 403
        assert (
            'user "alice" (groups=["system:authenticated"]) is attempting to grant RBAC permissions'
            in answer.message
        )
        assert await api.stored(f"{path}/r") is None
        assert (await api.create(path, role)).code == 201


@pytest.mark.kills("admission without PolicyParamAccess")
async def test_policy_with_parameters_needs_right_to_read_them():
    path = f"{POLICIES}/validatingadmissionpolicies"
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["configmaps"],
                }
            ]
        },
        "validations": [{"expression": "true"}],
    }
    async with running_api(modes=("RBAC",)) as api:
        answer = await api.create(path, named("p", spec=spec), user=ALICE)
        assert answer.code == 422
        assert 'must have "get" permission on all objects of the referenced paramKind' in answer.message
        assert await api.stored(f"{path}/p") is None
        assert (await api.create(path, named("p", spec=spec))).code == 201


@pytest.mark.kills("admission without ResourceClaimAccess")
async def test_device_is_allocated_only_by_user_with_right_to_bind():
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    async with running_api(modes=("RBAC",)) as api:
        await api.create_all((path, named("c", spec={"devices": {"requests": requests}})))
        answer = await api.patch(f"{path}/c/status", status, user=ALICE)
        assert answer.code == 422
        assert 'requires resource="resourceclaims/binding", verb="patch" permission' in answer.message
        assert "allocation" not in (await api.stored(f"{path}/c")).get("status", {})
        assert (await api.patch(f"{path}/c/status", status)).code == 200


@pytest.mark.kills("admission without PodCertificateSigning")
async def test_certificate_of_pod_is_denied_only_by_user_with_right_for_signer():
    path = f"/apis/certificates.k8s.io/{POD_CERTIFICATES}/namespaces/default/podcertificaterequests"
    now = "2030-01-01T00:00:00Z"
    denied = {"type": "Denied", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": now}
    async with running_api(modes=("RBAC",)) as api:
        await api.create_all((path, named("r", spec=pod_certificates.spec())))
        answer = await api.patch(f"{path}/r/status", {"status": {"conditions": [denied]}}, user=ALICE)
        assert answer.code == 422
        assert answer.message.endswith(
            'spec.signerName: Forbidden: User "alice" is not permitted to "sign" for signer "example.com/signer"'
        )
        assert not (await api.stored(f"{path}/r")).get("status")
        assert (await api.patch(f"{path}/r/status", {"status": {"conditions": [denied]}})).code == 200
