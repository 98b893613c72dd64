"""The conditions of CustomResourceDefinitions over time, as a watch of a real kube-apiserver 1.36 received them."""

import base64

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import make_authority
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, definition

WIDGETS_NAME, GADGETS_NAME = f"widgets.{GROUP}", f"gadgets.{GROUP}"
WIDGET = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}}

ACCEPTED = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
INSTALLING = ("Established", "False", "Installing", "the initial names have been accepted")
ESTABLISHED = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
NOT_ACCEPTED = ("Established", "False", "NotAccepted", "not all names are accepted")
LIST_CONFLICT = ("NamesAccepted", "False", "ListKindConflict", '"WidgetList" is already in use')
PENDING = (
    "Terminating",
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)
IN_PROGRESS = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
COMPLETED = ("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
NEVER = ("Terminating", "False", "NeverEstablished", "resource was never established")


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def definition_with_names(plural, kind, group=GROUP, **names):
    tree = definition(plural=plural, kind=kind)
    tree["spec"]["names"] = {"plural": plural, "kind": kind} | names
    tree["spec"]["group"] = group
    tree["metadata"]["name"] = f"{plural}.{group}"
    return tree


def conditions_of(tree):
    found = tree.get("status", {}).get("conditions") or ()
    return [(one["type"], one["status"], one["reason"], one["message"]) for one in found]


async def create(client, tree, last):
    answer = await client.post(DEFINITIONS, tree)
    assert answer.status == 201, answer.body
    return await conditions_until(
        client, tree["metadata"]["name"], answer.body["metadata"]["resourceVersion"], last
    )


async def conditions_until(client, name, since, last):
    """Return the conditions in a watch's events from a version to the last ones; None: the definition is deleted."""
    found = []
    path = f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name%3D{name}&resourceVersion={since}"
    async with client.watch(path) as events:
        async for event in events:
            if event["type"] == "DELETED":
                found.append(None)
            else:
                found.append(conditions_of(event["object"]))
            if found[-1] == last:
                return found
    raise AssertionError(found)


async def names(client, name):
    return (await client.get(f"{DEFINITIONS}/{name}")).body["status"]["acceptedNames"]


async def test_names_are_accepted_before_definition_is_established(client):
    created = await create(client, definition_with_names("widgets", "Widget"), [ACCEPTED, ESTABLISHED])
    assert created == [[ACCEPTED, INSTALLING], [ACCEPTED, ESTABLISHED]]


async def test_resource_is_listed_after_last_write_of_its_definition():
    class RecordingStore(MemoryStore):
        async def txn(self, request):
            if any(b"/customresourcedefinitions/" in operation.key for operation in request.then):
                found.append(GROUP in {group.name for group in client.server.catalog.groups})
            return await super().txn(request)

    found = []
    async with apiserver.running(kv=RecordingStore(clock=RealClock())) as client:
        await create(client, definition_with_names("widgets", "Widget"), [ACCEPTED, ESTABLISHED])
        assert (await client.get(f"/apis/{GROUP}/v1")).status == 200
    assert found == [False, False, False]


async def test_last_conflicting_name_is_reported_and_no_short_name_accepted(client):
    taken = definition_with_names("widgets", "Widget", shortNames=["wi", "wj"])
    await create(client, taken, [ACCEPTED, ESTABLISHED])
    asked = definition_with_names("gadgets", "Widget", shortNames=["wi", "wj", "widgets"])
    assert await create(client, asked, [LIST_CONFLICT, NOT_ACCEPTED])
    assert await names(client, GADGETS_NAME) == {"plural": "gadgets", "kind": ""}


async def test_released_names_are_accepted_for_waiting_definition(client):
    await create(
        client, definition_with_names("widgets", "Widget", shortNames=["wi", "wj"]), [ACCEPTED, ESTABLISHED]
    )
    await create(client, definition_with_names("gadgets", "Widget"), [LIST_CONFLICT, NOT_ACCEPTED])
    present = (await client.get(f"{DEFINITIONS}/{WIDGETS_NAME}")).body
    present["spec"]["names"] |= {"singular": "wk2", "shortNames": ["widgets", "wk"]}
    answer = await client.put(f"{DEFINITIONS}/{WIDGETS_NAME}", present)
    own = ("NamesAccepted", "False", "ShortNamesConflict", '"widgets" is already in use')
    await conditions_until(
        client, WIDGETS_NAME, answer.body["metadata"]["resourceVersion"], [own, ESTABLISHED]
    )
    given = {"plural": "widgets", "singular": "wk2", "shortNames": ["wi", "wj"], "kind": "Widget"}
    assert await names(client, WIDGETS_NAME) == given | {"listKind": "WidgetList"}
    path = f"{DEFINITIONS}?watch=1&fieldSelector=metadata.name%3D{GADGETS_NAME}"
    async with client.watch(path) as events:
        async for event in events:
            if event["object"]["status"]["acceptedNames"].get("singular") == "widget":
                break
    assert conditions_of(event["object"]) == [LIST_CONFLICT, NOT_ACCEPTED]
    served = (await client.get(f"/apis/{GROUP}/v1")).body["resources"]
    assert [(one["singularName"], one["shortNames"]) for one in served] == [("wk2", ["wi", "wj"])]


def approval_condition(status, reason, message):
    return ("KubernetesAPIApprovalPolicyConformant", status, reason, message)


async def test_api_approval_condition_of_kubernetes_groups(client):
    tree = definition_with_names("things", "Thing", "test.k8s.io")
    tree["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/x/y/pull/1"}
    in_order = approval_condition("True", "ApprovedAnnotation", "approved in https://github.com/x/y/pull/1")
    created = await create(client, tree, [ACCEPTED, ESTABLISHED, in_order])
    assert created[-2:] == [[ACCEPTED, INSTALLING, in_order], [ACCEPTED, ESTABLISHED, in_order]]
    changed = {"metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved now"}}}
    answer = await client.patch(f"{DEFINITIONS}/things.test.k8s.io", changed)
    no_longer = approval_condition("False", "UnapprovedAnnotation", 'not approved: "unapproved now"')
    version = answer.body["metadata"]["resourceVersion"]
    assert await conditions_until(client, "things.test.k8s.io", version, [ACCEPTED, ESTABLISHED, no_longer])


async def conditions_after_delete(client, name, *, last=None):
    since = (await client.get(f"{DEFINITIONS}/{name}")).body["metadata"]["resourceVersion"]
    assert (await client.delete(f"{DEFINITIONS}/{name}")).status == 200
    return await conditions_until(client, name, since, last)


async def test_terminating_definition_reports_progress(client):
    await create(client, definition_with_names("widgets", "Widget"), [ACCEPTED, ESTABLISHED])
    assert (await client.post(WIDGETS, WIDGET)).status == 201
    before = [ACCEPTED, ESTABLISHED]
    assert await conditions_after_delete(client, WIDGETS_NAME) == [
        [*before, PENDING],
        [*before, IN_PROGRESS],
        None,
    ]


async def test_definition_with_unaccepted_names_is_deleted_at_once(client):
    await create(client, definition_with_names("widgets", "Widget"), [ACCEPTED, ESTABLISHED])
    await create(client, definition_with_names("gadgets", "Widget"), [LIST_CONFLICT, NOT_ACCEPTED])
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await client.patch(f"{DEFINITIONS}/{GADGETS_NAME}", held)
    last = [LIST_CONFLICT, NOT_ACCEPTED, NEVER]
    assert (await conditions_after_delete(client, GADGETS_NAME, last=last))[-1] == last


async def test_definition_with_other_finalizer_is_served_until_removed(client):
    await create(client, definition_with_names("widgets", "Widget"), [ACCEPTED, ESTABLISHED])
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await client.patch(f"{DEFINITIONS}/{WIDGETS_NAME}", held)
    await client.post(WIDGETS, WIDGET)
    before = [ACCEPTED, ESTABLISHED]
    deleted = await conditions_after_delete(client, WIDGETS_NAME, last=[*before, COMPLETED])
    assert deleted == [[*before, PENDING], [*before, IN_PROGRESS], [*before, COMPLETED]]
    present = (await client.get(f"{DEFINITIONS}/{WIDGETS_NAME}")).body
    assert present["metadata"]["finalizers"] == ["example.com/hold"]
    assert (await client.get(WIDGETS)).body["items"] == []


INVALID = ("Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
CERTIFICATE = make_authority("kubernetes", now=RealClock().now(), random=SystemRandom()).certificate
KEY = b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
BAD_CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
NO_BLOCK, NO_CERTIFICATE, MALFORMED = (
    f"unable to load root certificates: {problem}"
    for problem in (
        "unable to parse bytes as PEM block",
        "no valid certificate authority data seen",
        "failed to parse certificate: x509: malformed certificate",
    )
)
BUNDLES = {
    b"bad": NO_BLOCK,
    b" \n": NO_BLOCK,
    KEY: NO_CERTIFICATE,
    KEY + b"zz": NO_BLOCK,
    BAD_CERTIFICATE: MALFORMED,
    CERTIFICATE + BAD_CERTIFICATE: "",
    BAD_CERTIFICATE + CERTIFICATE: "",
    CERTIFICATE + b"bad": "",
    b"x\n" + CERTIFICATE: "",
    b"": "",
}


def definition_with_webhook(bundle, plural="widgets", kind="Widget"):
    config = {"url": "https://a.b/c", "caBundle": base64.b64encode(bundle).decode()}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    return definition(plural=plural, kind=kind, conversion={"strategy": "Webhook", "webhook": webhook})


@pytest.mark.parametrize("bundle", BUNDLES)
async def test_definition_with_invalid_ca_bundle_is_not_established(client, bundle):
    last = [ACCEPTED, INVALID if BUNDLES[bundle] else ESTABLISHED]
    assert (await create(client, definition_with_webhook(bundle), last))[-1] == last
    answer = await client.get(f"/apis/{GROUP}/v1")
    assert answer.status == (404 if BUNDLES[bundle] else 200)


async def test_definition_is_established_after_ca_bundle_is_repaired(client):
    await create(client, definition_with_webhook(b"bad"), [ACCEPTED, INVALID])
    path = f"{DEFINITIONS}/{WIDGETS_NAME}"
    tree = (await client.patch(path, {"metadata": {"labels": {"a": "b"}}})).body
    assert conditions_of(tree)[-1] == INVALID
    tree["spec"]["conversion"] = definition_with_webhook(CERTIFICATE)["spec"]["conversion"]
    version = tree["metadata"]["resourceVersion"]
    assert (await client.put(path, tree)).status == 200
    await conditions_until(client, WIDGETS_NAME, version, [ACCEPTED, ESTABLISHED])


async def test_established_definition_refuses_invalid_ca_bundle(client):
    await create(client, definition_with_webhook(CERTIFICATE), [ACCEPTED, ESTABLISHED])
    path = f"{DEFINITIONS}/{WIDGETS_NAME}"
    for bundle, problem in BUNDLES.items():
        change = {"spec": {"conversion": definition_with_webhook(bundle)["spec"]["conversion"]}}
        answer = await client.patch(f"{path}?dryRun=All", change)
        assert answer.status == (422 if problem else 200)
        if problem:
            (cause,) = answer.body["details"]["causes"]
            shown = base64.b64encode(bundle).decode()
            assert cause["field"] == "spec.conversion.webhookClientConfig.caBundle"
            assert cause["message"] == f'Invalid value: "{shown}": {problem}'
