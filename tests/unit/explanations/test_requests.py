"""What is said of a request that was answered: by its code, its message and the rights of its user."""

import pytest

from mockube.explanations.refused import explain_request
from tests.support.explained import facts_of, pod_of, thing
from tests.support.told import evidence_of, told

RBAC = "rbac.authorization.k8s.io/v1"


def request(code=None, message="", *, status=(), **spec):
    sent = {"user": "ada", "verb": "create", "uri": "/x?a=b", "resource": "pods", "version": "v1"}
    answer = {name: value for name, value in (("code", code), ("message", message)) if value}
    return {"spec": {**sent, "namespace": "default", **spec}, "status": {**answer, **dict(status)}}


def forbidden(verb="create", **spec):
    return request(403, f'x is forbidden: User "ada" cannot {verb} resource "x"', verb=verb, **spec)


def role(verb, resource, *more, kind="role", name=None, user="--user=ada", place="-n default "):
    name = name or f"{verb}-{resource.partition('.')[0]}"
    return [
        f"- kubectl {place}create {kind} {name} --verb={verb} --resource={resource}{''.join(f' {each}' for each in more)}",
        f"- kubectl {place}create {kind}binding {name} --{kind}={name} {user}",
    ]


def fault(effect):
    return [
        f"Explained: the Fault f was injected, which {effect}",
        "- mockube fault remove f",
        "@ fault/f",
    ]


INJECTED = {"fault": "f", "answeredByFault": True}
QUOTA = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
RAISE_QUOTA = [
    "- kubectl -n default describe quota q",
    """- kubectl -n default patch resourcequota/q --type=merge -p '{"spec":{"hard":{"pods":"2"}}}'""",
    "@ resourcequota/q spec.hard",
]
OF_QUOTA = [
    "Explained: the ResourceQuota q is exhausted: requested: pods=1, used: pods=1, limited: pods=1",
    *RAISE_QUOTA,
]
FORCE = "- Leave the fields out, or take them over with `kubectl apply --server-side --force-conflicts`."
CHANGED = "x: the object has been modified; please apply your changes to the latest version"
OLD = [
    "Explained: the object was changed after the client had read it: its resourceVersion is an older one",
    "- Read it again, and repeat the change.",
]

REQUESTS = {
    "cut": (request(status={"fault": "f", "isCut": True}), fault("cut the connection")),
    "its client left": (
        request(status={"seconds": 1}),
        ["Unknown: the request ended without a response: its client left"],
    ),
    "in progress": (request(), ["Unknown: the request has no response yet, as a watch has none"]),
    "answered, as slowly as a Fault made it": (
        request(399, status={"fault": "f", "seconds": 1}),
        ["NoProblem: the request was answered with 399"],
    ),
    "answered by a Fault": (request(503, "m", status=INJECTED), fault("answered with 503")),
    "answered, but not by the Fault": (
        request(418, "m", status={"fault": "f"}),
        ["Explained: the server answered with 418: m"],
    ),
    "answered by no Fault": (
        request(418, "m", status={"answeredByFault": True}),
        ["Explained: the server answered with 418: m"],
    ),
    "without a message": (
        request(404),
        ["Unknown: the request was answered with 404, and its message was not recorded"],
    ),
    "without valid credentials": (
        request(401),
        [
            "Explained: the credentials of the request were not accepted: they are missing, wrong or expired",
            "- mockube kubeconfig",
        ],
    ),
    **{f"refused by admission, {code}": (request(code, QUOTA), OF_QUOTA) for code in (400, 403, 422, 500)},
    **{
        f"no rule names {verb} of an object": (
            forbidden(verb, name="web"),
            [
                f"Explained: no rule lets ada {verb} pods web in the namespace default",
                *role(verb, "pods", "--resource-name=web"),
            ],
        )
        for verb in ("get", "update", "patch", "delete")
    },
    "a rule of create has no names": (
        forbidden(name="web"),
        ["Explained: no rule lets ada create pods web in the namespace default", *role("create", "pods")],
    ),
    "a rule of get without a name": (
        forbidden("get"),
        ["Explained: no rule lets ada get pods in the namespace default", *role("get", "pods")],
    ),
    "a rule of the whole cluster": (
        forbidden("list", namespace="", group="apps", resource="deployments", subresource="scale"),
        [
            "Explained: no rule lets ada list deployments.apps/scale in the whole cluster",
            *role("list", "deployments.apps/scale", kind="clusterrole", name="list-deployments", place=""),
        ],
    ),
    "a rule of a path": (
        forbidden("get", resource="", uri="/metrics?a=b"),
        [
            "Explained: no rule lets ada get the path /metrics",
            "- kubectl create clusterrole get-path --verb=get --non-resource-url=/metrics",
            "- kubectl create clusterrolebinding get-path --clusterrole=get-path --user=ada",
        ],
    ),
    "a webhook that quotes the authorizers": (
        request(403, 'admission webhook "w" denied the request: x is forbidden: User "ada" cannot create x'),
        [
            'Explained: the admission webhook w denied it: x is forbidden: User "ada" cannot create x',
            "- kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
        ],
    ),
    "the authorizers of another verb": (
        request(403, 'x is forbidden: User "ada" cannot bind resource "roles"'),
        ['Explained: x is forbidden: User "ada" cannot bind resource "roles"'],
    ),
    **{
        f"an authorizer has a reason, {scope}": (
            request(403, f'x is forbidden: User "ada" cannot create {scope}: it is closed'),
            ["Explained: an authorizer does not let ada create pods in the namespace default: it is closed"],
        )
        for scope in ('x in the namespace "default"', "x at the cluster scope", 'path "/x"')
    },
    "exists already": (
        request(409, 'pods "web" already exists'),
        ["Explained: an object of this name exists already"],
    ),
    "changed since it was read": (
        request(409, CHANGED, name="web", group="apps", resource="deployments", subresource="scale"),
        [*OLD, "- mockube log deployments.apps/web -n default"],
    ),
    "changed since it was read, in the whole cluster": (
        request(409, CHANGED, namespace="", resource="nodes"),
        [*OLD, "- mockube log nodes/NAME"],
    ),
    **{
        f"a conflict of field managers: {message}": (
            request(409, message),
            [f"Explained: another field manager owns fields that the request sets: {message}", FORCE],
        )
        for message in ('Apply failed with 1 conflict: "a"', 'conflict with "b"')
    },
    "another conflict": (request(409, "StorageError"), ["Explained: StorageError"]),
    "no such resource": (
        request(404, "the server could not find the requested resource"),
        [
            "Explained: the server serves no such resource: its group, version or name is wrong, or its definition is not installed",
            "- kubectl api-resources",
        ],
    ),
    "no such object": (
        request(404, 'pods "web" not found'),
        ['Explained: it does not exist: pods "web" not found'],
    ),
    "invalid": (
        request(422, "Pod web is invalid: spec: Required value"),
        ["Explained: the object breaks a rule of its kind: spec: Required value", "- kubectl explain pods"],
    ),
    "invalid, of a group": (
        request(422, "Job web is invalid: spec: Required value", group="batch", resource="jobs"),
        [
            "Explained: the object breaks a rule of its kind: spec: Required value",
            "- kubectl explain jobs.batch",
        ],
    ),
    "too many requests": (
        request(429, "too many"),
        ["Explained: the server asked the client to wait: too many"],
    ),
    "the conversion of an unknown definition": (
        request(500, "conversion webhook for a failed", group="example.com", resource="shops"),
        ["Explained: conversion webhook for a failed"],
    ),
}


@pytest.mark.parametrize(("recorded", "lines"), REQUESTS.values(), ids=REQUESTS)
def test_request(recorded, lines):
    assert told(explain_request(recorded, facts_of())) == lines


BUDGET_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."


def budget(name="pdb", **labels):
    return thing(
        "PodDisruptionBudget",
        name,
        api_version="policy/v1",
        spec={"minAvailable": 1, "selector": {"matchLabels": labels}},
        status={"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    )


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        ([], f"a PodDisruptionBudget forbade the eviction of web: {BUDGET_MESSAGE}"),
        (
            [pod_of(metadata={"labels": {"app": "web"}}), budget(app="db")],
            f"no PodDisruptionBudget that you may list selects web now: {BUDGET_MESSAGE}",
        ),
        (
            [pod_of(metadata={"labels": {"app": "web"}}), budget(app="web"), budget("db", app="db")],
            "the PodDisruptionBudget pdb forbids the eviction of the pod web: ",
        ),
    ],
    ids=["no pod", "no budget", "budget"],
)
def test_eviction_that_a_budget_forbids(objects, cause):
    recorded = request(429, BUDGET_MESSAGE, name="web", subresource="eviction")
    assert explain_request(recorded, facts_of(*objects)).cause.startswith(cause)


def binding(kind, name, subject, namespace=""):
    return thing(
        kind,
        name,
        api_version=RBAC,
        namespace=namespace,
        roleRef={"kind": "ClusterRole", "name": "view"},
        subjects=[subject],
    )


@pytest.mark.parametrize(
    ("subject", "is_of_user"),
    [
        ({"kind": "User", "name": "ada"}, True),
        ({"kind": "User", "name": "dev"}, False),
        ({"kind": "Group", "name": "dev"}, True),
        ({"kind": "Group", "name": "ada"}, False),
        ({"kind": "Group", "name": "system:authenticated"}, False),
        ({"kind": "ServiceAccount", "name": "ada", "namespace": "default"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_binding_that_does_not_suffice(kind, subject, is_of_user):
    of_namespace = "default" if kind == "RoleBinding" else ""
    bound = binding(kind, "b", subject, of_namespace)
    found = explain_request(forbidden(groups=["dev", "system:authenticated"]), facts_of(bound))
    expected = f"{kind} b to ClusterRole view does not allow it" if is_of_user else "no binding names ada"
    assert evidence_of(found)[2:] == [expected]


def test_bindings_of_other_namespaces_and_those_that_may_not_be_listed_are_not_said():
    bound = binding("RoleBinding", "b", {"kind": "User", "name": "ada"}, "default")
    cluster = explain_request(forbidden("list", namespace=""), facts_of(bound))
    assert evidence_of(cluster)[2:] == ["no binding names ada"]
    refused = f"clusterrolebindings.{RBAC.partition('/')[0]}"
    assert evidence_of(explain_request(forbidden(), facts_of(refused=(refused,))))[2:] == []


def test_role_that_is_offered_has_only_what_the_request_needs():
    asked = []
    facts = facts_of()
    facts.refusal_of = lambda question: asked.append(question) or ""
    recorded = forbidden("patch", group="apps", resource="deployments", subresource="scale", name="web")
    explain_request({**recorded, "spec": {**recorded["spec"], "user": "system:serviceaccount:a:bot"}}, facts)
    explain_request(forbidden("get", resource="", uri="/metrics"), facts)
    bodies = [each.body for each in asked]
    assert (
        '"rules":[{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["patch"],"resourceNames":["web"]}]'
        in bodies[0]
    )
    assert '"subjects":[{"kind":"ServiceAccount","namespace":"a","name":"bot"}]' in bodies[1]
    assert '"rules":[{"nonResourceURLs":["/metrics"],"verbs":["get"]}]' in bodies[2]
    assert '"subjects":[{"kind":"User","name":"ada","apiGroup":"rbac.authorization.k8s.io"}]' in bodies[3]
    assert [(each.kind, each.namespace) for each in asked] == [
        ("Role", "default"),
        ("RoleBinding", "default"),
        ("ClusterRole", ""),
        ("ClusterRoleBinding", ""),
    ]


def policy(*validations):
    return thing("ValidatingAdmissionPolicy", "few", namespace="", spec={"validations": [*validations]})


SMALL = {"expression": "object.a < 2", "message": "small"}
NO_MESSAGE = {"expression": "object.b"}
BY_EXPRESSION = {"expression": "object.c", "messageExpression": "string(object.c)"}
WITHHELD = "its message may quote a value of a Secret and is not recorded"


@pytest.mark.parametrize(
    ("validations", "said", "cause", "evidence"),
    [
        ([SMALL, NO_MESSAGE], "small", "small", ["object.a < 2"]),
        ([SMALL, NO_MESSAGE], "failed expression: object.b", "failed expression: object.b", ["object.b"]),
        ([SMALL, NO_MESSAGE], "", "one of: small", ["small: object.a < 2", "object.b"]),
        ([SMALL], "", "small", ["small: object.a < 2"]),
        ([NO_MESSAGE], "", WITHHELD, ["object.b"]),
        ([SMALL, BY_EXPRESSION], "", WITHHELD, ["small: object.a < 2", "object.c"]),
    ],
    ids=["message", "expression", "withheld", "withheld of one", "no message", "message by an expression"],
)
def test_policy(validations, said, cause, evidence):
    message = f"ValidatingAdmissionPolicy 'few' with binding 'b' denied request: {said}"
    found = explain_request(request(422, message), facts_of(policy(*validations)))
    assert found.cause == f"the ValidatingAdmissionPolicy few, bound by b, denied it: {cause}"
    assert evidence_of(found)[2:] == evidence


def shops(version="v1", conversion=None, **schema):
    versions = [
        {"name": version, "schema": {"openAPIV3Schema": schema}},
        {
            "name": "v0",
            "schema": {
                "openAPIV3Schema": {"x-kubernetes-validations": [{"rule": "old", "message": "large"}]}
            },
        },
    ]
    spec = {"versions": versions, "conversion": conversion}
    return thing("CustomResourceDefinition", "shops.example.com", namespace="", spec=spec)


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({"x-kubernetes-validations": [{"rule": "self.a", "message": "large"}]}, ["self.a"]),
        ({"x-kubernetes-validations": [{"rule": "self.a", "message": "another"}]}, []),
        ({"x-kubernetes-validations": [{"rule": "self.b"}]}, ["self.b"]),
        ({"items": [{"x-kubernetes-validations": [{"rule": "self.b"}]}]}, ["self.b"]),
        ({"properties": {"x-kubernetes-validations": {"rule": "self.b"}}}, []),
    ],
    ids=["message", "other message", "no message", "in a list", "a field of the name"],
)
def test_rule_of_a_definition(schema, rules):
    message = "Shop a is invalid: spec: large, failed rule: self.b"
    of_shop = {"group": "example.com", "resource": "shops"}
    found = explain_request(request(422, message, **of_shop), facts_of(shops(**schema)))
    assert evidence_of(found)[2:] == rules


@pytest.mark.parametrize(
    ("client", "origins"),
    [
        ({"service": {"namespace": "a", "name": "b"}}, ["@ service/b"]),
        ({"url": "https://x"}, []),
    ],
    ids=["service", "url"],
)
def test_conversion_that_fails(client, origins):
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": client}}
    of_shop = {"group": "example.com", "resource": "shops"}
    found = explain_request(
        request(500, "conversion webhook for x", **of_shop), facts_of(shops(conversion=conversion))
    )
    assert told(found) == [
        "Explained: conversion webhook for x",
        "- Start the server of the conversion.",
        """- kubectl patch customresourcedefinition/shops.example.com --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'""",
        "@ customresourcedefinition/shops.example.com spec.conversion",
        *origins,
    ]
