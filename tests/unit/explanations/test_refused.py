"""Explanations of requests that were refused."""

import pytest

from mockube.explanations.facts import REFUSED, Allowed
from mockube.explanations.refused import explain_request
from tests.support.explained import facts_of, thing

RBAC = "rbac.authorization.k8s.io/v1"


def request(code, message="", *, fault="", answered=False, **spec):
    sent = {
        "user": "ada",
        "verb": "create",
        "resource": "pods",
        "version": "v1",
        "namespace": "default",
        **spec,
    }
    status = {"code": code, "message": message, "fault": fault, "answeredByFault": answered}
    return {"spec": {"uri": "/x", **sent}, "status": {name: value for name, value in status.items() if value}}


def explained(recorded, *objects, allowed=False, **more):
    return explain_request(recorded, facts_of(*objects, allowed=allowed, **more))


def commands(found):
    return [remedy.command for remedy in found.remedies]


def forbidden(verb="create", **spec):
    return request(
        403, f'pods is forbidden: User "ada" cannot {verb} resource "pods" in API group ""', verb=verb, **spec
    )


def test_smallest_rule_that_allows_a_request():
    found = explained(forbidden())
    assert found.cause == "no rule lets ada create pods in the namespace default"
    assert commands(found) == [
        "kubectl -n default create role create-pods --verb=create --resource=pods",
        "kubectl -n default create rolebinding create-pods --role=create-pods --user=ada",
    ]


def test_rule_has_the_name_and_the_subresource():
    spec = {"group": "apps", "resource": "deployments", "subresource": "scale", "name": "web"}
    found = explained(forbidden("patch", user="system:serviceaccount:a:bot", **spec))
    assert commands(found) == [
        "kubectl -n default create role patch-deployments --verb=patch --resource=deployments.apps/scale --resource-name=web",
        "kubectl -n default create rolebinding patch-deployments --role=patch-deployments --serviceaccount=a:bot",
    ]


def test_rules_of_the_whole_cluster_and_of_paths():
    cluster = explained(forbidden("list", resource="nodes", namespace=""))
    assert commands(cluster)[0] == "kubectl create clusterrole list-nodes --verb=list --resource=nodes"
    path = explained(
        request(
            403,
            'forbidden: User "ada" cannot get path "/metrics"',
            verb="get",
            resource="",
            namespace="",
            uri="/metrics?a=b",
        )
    )
    assert path.cause == "no rule lets ada get the path /metrics"
    assert commands(path)[0] == "kubectl create clusterrole get-path --verb=get --non-resource-url=/metrics"


def test_names_are_quoted_in_commands():
    found = explained(forbidden(user="$(reboot)"))
    assert commands(found)[1].endswith("'--user=$(reboot)'")


def test_bindings_that_do_not_suffice_are_named():
    def binding(name, *subjects):
        role = {"kind": "ClusterRole", "name": "view"}
        return thing(
            "ClusterRoleBinding", name, api_version=RBAC, namespace="", roleRef=role, subjects=[*subjects]
        )

    group = binding("group", {"kind": "Group", "name": "ada"})
    texts = [each.text for each in explained(forbidden(), group).evidence]
    assert "no binding names ada" in texts
    own = binding("own", {"kind": "User", "name": "ada"})
    other = binding("other", {"kind": "User", "name": "bob"})
    texts = [each.text for each in explained(forbidden(), own, other).evidence]
    assert "ClusterRoleBinding own to ClusterRole view does not allow it" in texts
    assert not any("other" in text for text in texts)
    assert "no binding names ada" in [each.text for each in explained(forbidden(), other).evidence]


def test_rights_that_were_granted_since():
    assert (
        explained(forbidden(), allowed=True).cause
        == "no rule let ada create pods in the namespace default then; a rule does now"
    )
    unread = explained(forbidden(), allowed=REFUSED)
    assert unread.cause == "ada was not allowed then to create pods in the namespace default"


def lost(kind, name, field, **more):
    return thing(kind, name, api_version=RBAC, field=field, **more)


@pytest.mark.parametrize(
    ("loss", "path", "end"),
    [
        (
            lost("RoleBinding", "dev", ""),
            (),
            "the RoleBinding dev of the namespace default did, until it was deleted",
        ),
        (
            lost("ClusterRole", "edit", "rules", namespace=""),
            ("rules",),
            "the ClusterRole edit did, until its rules were changed",
        ),
    ],
)
def test_role_or_binding_by_which_the_right_went_is_the_origin(loss, path, end):
    name = loss["metadata"]["name"]
    write = {"revision": 7, "type": "DELETED", "author": {"user": "bob"}}
    found = explained(forbidden(), loss=loss, writes={(name, path): [write]})
    assert found.cause == f"no rule lets ada create pods in the namespace default: {end}"
    (origin,) = found.origins
    assert (origin.object.kind, origin.object.name, origin.path) == (loss["kind"], name, path)
    assert [each.user for each in origin.writes] == ["bob"]


def test_reason_of_an_authorizer_is_the_cause():
    message = 'pods is forbidden: User "ada" cannot create resource "pods" in API group "" in the namespace "default"'
    found = explained(request(403, f"{message}: the office is closed"))
    cause = "an authorizer does not let ada create pods in the namespace default: the office is closed"
    assert (found.cause, found.remedies) == (cause, ())
    missing = explained(request(403, f'{message}: RBAC: role.rbac.authorization.k8s.io "a" not found'))
    assert missing.cause == "no rule lets ada create pods in the namespace default"


def test_question_to_the_authorizers_is_that_of_the_request():
    asked = []
    facts = facts_of(allowed=False)
    facts.is_allowed = asked.append
    explain_request(forbidden("get", name="web", groups=["dev"]), facts)
    (question,) = asked
    assert question == Allowed(
        user="ada",
        groups=("dev",),
        verb="get",
        version="v1",
        resource="pods",
        namespace="default",
        name="web",
    )


def test_fault_is_the_cause():
    found = explained(request(503, "unavailable", fault="busy", answered=True))
    assert found.cause == "the Fault busy was injected, which answered with 503"
    assert commands(found) == ["mockube fault remove busy"]


def test_fault_that_did_not_answer_is_only_evidence():
    found = explained(request(404, 'pods "a" not found', fault="slow"))
    assert found.cause == 'it does not exist: pods "a" not found'
    assert found.evidence[-1].text == "the Fault slow was injected, which did not give the response"


@pytest.mark.parametrize(
    ("recorded", "state", "cause"),
    [
        (request(200), "NoProblem", "the request was answered with 200"),
        (request(None), "Unknown", "the request has no response yet"),
        (request(403), "Unknown", "its message was not recorded"),
        (request(401), "Explained", "the credentials of the request were not accepted"),
        (
            request(403, "exceeded quota: q, requested: pods=1"),
            "Explained",
            "the ResourceQuota q is exhausted",
        ),
        (
            request(403, "is attempting to grant RBAC permissions not currently held"),
            "Explained",
            "nobody may grant rights",
        ),
        (
            request(404, "the server could not find the requested resource"),
            "Explained",
            "serves no such resource",
        ),
        (request(404, 'pods "a" not found'), "Explained", 'it does not exist: pods "a" not found'),
        (request(409, 'pods "a" already exists'), "Explained", "an object of this name exists already"),
        (
            request(409, "x: the object has been modified; y"),
            "Explained",
            "its resourceVersion is an older one",
        ),
        (request(409, "Apply failed with 1 conflict"), "Explained", "another field manager owns fields"),
        (
            request(422, "Pod x is invalid: spec: Required value"),
            "Explained",
            "breaks a rule of its kind: spec: Required",
        ),
        (
            request(429, "violate the pod's disruption budget"),
            "Explained",
            "the server asked the client to wait",
        ),
        (request(418, "teapot"), "Explained", "the server answered with 418: teapot"),
    ],
)
def test_responses(recorded, state, cause):
    found = explained(recorded)
    assert (found.state, cause in found.cause) == (state, True), found.cause


def test_expression_of_policy():
    rules = [{"expression": "object.a < 2", "message": "small"}, {"expression": "object.b"}]
    policy = thing("ValidatingAdmissionPolicy", "few", namespace="", spec={"validations": rules})
    found = explained(
        request(422, "ValidatingAdmissionPolicy 'few' with binding 'b' denied request: small"), policy
    )
    assert found.cause == "the ValidatingAdmissionPolicy few, bound by b, denied it: small"
    assert [each.text for each in found.evidence if "Policy" in each.source] == ["object.a < 2"]


def test_rule_of_custom_resource():
    rule = {"rule": "self.size < 3", "message": "too large"}
    schema = {"properties": {"spec": {"x-kubernetes-validations": [rule, {"rule": "self.x"}]}}}
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    definition = thing(
        "CustomResourceDefinition", "shops.example.com", namespace="", spec={"versions": versions}
    )
    recorded = request(
        422,
        'Shop "a" is invalid: spec: Invalid value: "object": too large',
        group="example.com",
        resource="shops",
    )
    found = explained(recorded, definition)
    assert [each.text for each in found.evidence if "Definition" in each.source] == ["self.size < 3"]


def test_webhook_and_its_configuration():
    service = {"namespace": "a", "name": "b"}
    webhook = {"name": "w.x.y", "failurePolicy": "Fail", "clientConfig": {"service": service}}
    configuration = thing("ValidatingWebhookConfiguration", "rules", namespace="", webhooks=[webhook])
    found = explained(request(400, 'admission webhook "w.x.y" denied the request: no'), configuration)
    assert found.cause == "the admission webhook w.x.y denied it: no"
    assert found.evidence[-1].source == "ValidatingWebhookConfiguration rules"
    assert found.evidence[-1].text == "failurePolicy Fail, called at the Service a/b"


@pytest.mark.parametrize(
    "text",
    [
        'pods is forbidden: User "ada" cannot create pods',
        "exceeded quota: q, requested: pods=1",
        "violates PodSecurity",
    ],
)
def test_webhook_that_quotes_other_refusals_is_the_cause(text):
    found = explained(request(403, f'admission webhook "w.x.y" denied the request: {text}'))
    assert found.cause == f"the admission webhook w.x.y denied it: {text}"


def test_policy_that_quotes_an_authorizer_is_the_cause():
    text = 'pods is forbidden: User "ada" cannot create pods'
    refused = f"ValidatingAdmissionPolicy 'few' with binding 'b' denied request: {text}"
    assert (
        explained(request(403, refused)).cause
        == f"the ValidatingAdmissionPolicy few, bound by b, denied it: {text}"
    )


def test_cut_connection_is_explained_by_its_fault():
    recorded = request(0, fault="cut-off", answered=True)
    recorded["status"] |= {"isCut": True, "seconds": 0.1}
    found = explained(recorded)
    assert found.cause == "the Fault cut-off was injected, which cut the connection"
    assert commands(found) == ["mockube fault remove cut-off"]


def test_request_whose_client_left_is_not_in_progress():
    recorded = {**request(0), "status": {"seconds": 0.1}}
    assert explained(recorded).cause == "the request ended without a response: its client left"


def test_binding_of_the_service_account_of_the_request_is_named():
    def binding(name, namespace):
        role = {"kind": "ClusterRole", "name": "view"}
        subject = {"kind": "ServiceAccount", "name": "bot", "namespace": namespace}
        return thing(
            "ClusterRoleBinding", name, api_version=RBAC, namespace="", roleRef=role, subjects=[subject]
        )

    found = explained(
        forbidden(user="system:serviceaccount:a:bot"), binding("own", "a"), binding("other", "b")
    )
    assert [each.text for each in found.evidence if each.source == "bindings"] == [
        "ClusterRoleBinding own to ClusterRole view does not allow it"
    ]


def test_fault_that_did_not_give_the_response_is_evidence():
    found = explained(request(404, "pods x not found", fault="slow"))
    assert "the Fault slow was injected, which did not give the response" in [
        each.text for each in found.evidence
    ]
    assert all("Fault" not in each.text for each in explained(request(404, "pods x not found")).evidence)
