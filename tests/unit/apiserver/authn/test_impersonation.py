"""Impersonation: the headers, the permissions that each mode needs, and the resulting user.

Messages and users are those of kube-apiserver 1.36.3.
"""

import pytest

from mockube.apimachinery.status import BadRequest, Forbidden
from mockube.apiserver.authz.chain import Attributes, Authorization, Decision
from mockube.apiserver.metrics.access import ImpersonationMetrics
from mockube.apiserver.request.impersonation import NODE_NAME, Impersonator, read
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry

REAL = User(name="real")
ROBOT = User(
    name="system:serviceaccount:ns:robot",
    extra={NODE_NAME: ("n1",), "authentication.kubernetes.io/x": ("y",)},
)
BOB = ("impersonate-user", "bob")
AUTHENTICATED = "system:authenticated"


class StubAuthorizer:
    """An authorizer that allows the given verbs, or all by default, and records the attributes of its calls."""

    def __init__(self, *verbs):
        self.verbs = verbs
        self.asked = []

    def decide(self, attributes, /):
        where = "/".join(filter(None, (attributes.resource, attributes.subresource)))
        self.asked.append((attributes.verb, where, attributes.namespace, attributes.name))
        self.user = attributes.user
        allowed = not self.verbs or attributes.verb in self.verbs
        return (Decision.ALLOW, "") if allowed else (Decision.NO_OPINION, "")


def request(user=REAL):
    return Attributes(user=user, verb="list", version="v1", resource="pods", namespace="default")


def impersonator_of(permits, metrics=None):
    clock = SteppedClock()
    return Impersonator(
        Authorization((permits,)), metrics or ImpersonationMetrics(MetricsRegistry()), clock.monotonic
    )


async def impersonate(permits, *headers, user=REAL):
    return impersonator_of(permits).impersonate(request(user), read(headers))


def test_request_without_headers_is_not_impersonated():
    assert read([]) is None
    assert read([("impersonate-user", ""), BOB]) is None
    assert read([("impersonate-foo", "1")]) is None


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        pytest.param(
            [("impersonate-group", "a")],
            'Name:"", UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)',
            id="group",
        ),
        pytest.param(
            [("impersonate-group", "")],
            'Name:"", UID:"", Groups:[]string{""}, Extra:map[string][]string(nil)',
            id="empty group",
        ),
        pytest.param(
            [("impersonate-uid", "1")],
            'Name:"", UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)',
            id="uid",
        ),
        pytest.param(
            [
                ("impersonate-uid", "1"),
                ("impersonate-group", 'q"x'),
                ("impersonate-extra-b", "1"),
                ("impersonate-extra-a", "1"),
                ("impersonate-extra-a", "2"),
            ],
            'Name:"", UID:"1", Groups:[]string{"q\\"x"}, '
            'Extra:map[string][]string{"a":[]string{"1", "2"}, "b":[]string{"1"}}',
            id="all",
        ),
    ],
)
def test_impersonated_group_without_user_is_refused(headers, user):
    with pytest.raises(BadRequest) as refused:
        read(headers)
    assert str(refused.value) == f"requested &user.DefaultInfo{{{user}}} without impersonating a user name"


@pytest.mark.parametrize(
    ("encoded", "key"),
    [("acme.io%2fscope", "acme.io/scope"), ("acme.io%2", "acme.io%2"), ("a%zz%2f", "a%zz%2f"), ("", "")],
)
def test_extra_keys_are_percent_decoded(encoded, key):
    assert list(read([BOB, (f"impersonate-extra-{encoded}", "v")]).extra) == [key]


def test_first_impersonate_user_header_is_used():
    assert read([BOB, ("impersonate-user", "eve")]).user == "bob"


LEGACY = [
    pytest.param([BOB], [("users", "", "bob")], (AUTHENTICATED,), id="a user"),
    pytest.param(
        [BOB, ("impersonate-group", "a"), ("impersonate-group", "system:masters")],
        [("users", "", "bob"), ("groups", "", "a"), ("groups", "", "system:masters")],
        ("a", "system:masters", AUTHENTICATED),
        id="groups",
    ),
    pytest.param(
        [("impersonate-user", "system:serviceaccount:ns:robot")],
        [("serviceaccounts", "ns", "robot")],
        ("system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED),
        id="a service account",
    ),
    pytest.param(
        [("impersonate-user", "system:serviceaccount:ns:robot"), ("impersonate-group", "x")],
        [("serviceaccounts", "ns", "robot"), ("groups", "", "x")],
        ("x", AUTHENTICATED),
        id="a service account in another group",
    ),
    pytest.param(
        [("impersonate-user", "system:node:n1")],
        [("users", "", "system:node:n1")],
        (AUTHENTICATED,),
        id="a node",
    ),
    pytest.param(
        [("impersonate-user", "system:anonymous")],
        [("users", "", "system:anonymous")],
        ("system:unauthenticated",),
        id="anonymous",
    ),
    pytest.param(
        [BOB, ("impersonate-group", "system:unauthenticated")],
        [("users", "", "bob"), ("groups", "", "system:unauthenticated")],
        ("system:unauthenticated",),
        id="not authenticated",
    ),
    pytest.param(
        [BOB, ("impersonate-extra-acme.com%2fscope", "view"), ("impersonate-uid", "7")],
        [("users", "", "bob"), ("uids", "", "7"), ("userextras/acme.com/scope", "", "view")],
        (AUTHENTICATED,),
        id="extra and uid",
    ),
]


@pytest.mark.parametrize(("headers", "asked", "groups"), LEGACY)
async def test_legacy_impersonation_checks_each_attribute(headers, asked, groups):
    permits = StubAuthorizer("impersonate")
    result = await impersonate(permits, *headers)
    assert [ask[1:] for ask in permits.asked if ask[0] == "impersonate"] == asked
    assert (result.user.name, result.user.groups, result.constraint) == (headers[0][1], groups, "")


async def test_impersonated_extra_and_uid_are_set():
    result = await impersonate(
        StubAuthorizer(), BOB, ("impersonate-uid", "7"), ("impersonate-extra-acme.io%2fa", "1")
    )
    assert (result.user.uid, result.user.extra) == ("7", {"acme.io/a": ["1"]})


@pytest.mark.parametrize(
    ("name", "user", "mode", "resource", "groups"),
    [
        ("bob", REAL, "user-info", ("users", "", "bob"), ()),
        ("system:node:n1", REAL, "arbitrary-node", ("nodes", "", "n1"), ("system:nodes",)),
        ("system:node:N1", REAL, "user-info", ("users", "", "system:node:N1"), ()),
        ("system:node:n1", ROBOT, "associated-node", ("nodes", "", "*"), ("system:nodes",)),
        ("system:node:n2", ROBOT, "arbitrary-node", ("nodes", "", "n2"), ("system:nodes",)),
        (
            "system:serviceaccount:ns:robot",
            REAL,
            "serviceaccount",
            ("serviceaccounts", "ns", "robot"),
            ("system:serviceaccounts", "system:serviceaccounts:ns"),
        ),
    ],
)
async def test_constrained_impersonation_checks_request_and_user(name, user, mode, resource, groups):
    permits = StubAuthorizer(f"impersonate-on:{mode}:list", f"impersonate:{mode}")
    result = await impersonate(permits, ("impersonate-user", name), user=user)
    assert permits.asked[-2:] == [
        (f"impersonate-on:{mode}:list", "pods", "default", ""),
        (f"impersonate:{mode}", *resource),
    ]
    assert (result.user.groups, result.constraint) == ((*groups, AUTHENTICATED), f"impersonate:{mode}")


async def test_associated_node_permission_is_independent_of_pod():
    permits = StubAuthorizer()
    await impersonate(permits, ("impersonate-user", "system:node:n1"), user=ROBOT)
    assert permits.user.extra == {"authentication.kubernetes.io/associated-node-keys": sorted(ROBOT.extra)}


async def test_impersonated_groups_need_one_wildcard_or_each_permission():
    many = [("impersonate-group", name) for name in "abcd"]
    permits = StubAuthorizer()
    await impersonate(permits, BOB, *many)
    assert [ask[3] for ask in permits.asked if ask[1] == "groups"] == ["*"]


@pytest.mark.parametrize(
    ("verbs", "headers", "message"),
    [
        pytest.param(
            ("none",),
            [BOB],
            'pods is forbidden: User "real" cannot impersonate-on:user-info:list resource "pods" '
            'in API group "" in the namespace "default"',
            id="no permission at all: the first mode's",
        ),
        pytest.param(
            ("none",),
            [("impersonate-user", "system:serviceaccount:ns:robot"), ("impersonate-group", "x")],
            'serviceaccounts "robot" is forbidden: User "real" cannot impersonate resource "serviceaccounts" '
            'in API group "" in the namespace "ns"',
            id="the legacy mode alone",
        ),
        pytest.param(
            ("impersonate-on:user-info:list", "impersonate:user-info"),
            [BOB, ("impersonate-group", "system:masters")],
            'groups.authentication.k8s.io "system:masters" is forbidden: User "real" cannot '
            'impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the system:masters group is not allowed",
            id="masters",
        ),
        pytest.param(
            ("impersonate-on:user-info:list", "impersonate:user-info"),
            [BOB, ("impersonate-group", "")],
            'groups.authentication.k8s.io is forbidden: User "real" cannot impersonate:user-info resource "groups" '
            'in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the empty string group is not allowed",
            id="an empty group",
        ),
        pytest.param(
            ("impersonate-on:user-info:list", "impersonate:user-info"),
            [BOB, ("impersonate-extra-", "view")],
            'userextras.authentication.k8s.io is forbidden: User "real" cannot impersonate:user-info resource '
            '"userextras" in API group "authentication.k8s.io" at the cluster scope: '
            "impersonating the empty string key in extra is not allowed",
            id="an empty key",
        ),
        pytest.param(
            ("impersonate-on:user-info:list", "impersonate:user-info"),
            [BOB, ("impersonate-extra-scopes", "view")],
            'userextras.authentication.k8s.io is forbidden: User "real" cannot impersonate:user-info resource '
            '"userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key '
            'in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path '
            '(such as "acme.io/foo")',
            id="a key without a domain",
        ),
        pytest.param(
            ("impersonate-on:user-info:list", "impersonate:user-info"),
            [BOB, ("impersonate-extra-acme.io%2f%41", "view")],
            'userextras.authentication.k8s.io is forbidden: User "real" cannot impersonate:user-info resource '
            '"userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating a non-lowercase '
            'key in extra is not allowed: "acme.io/A"',
            id="a key with a capital letter",
        ),
    ],
)
async def test_refused_impersonation_has_upstreams_message(verbs, headers, message):
    with pytest.raises(Forbidden) as refused:
        await impersonate(StubAuthorizer(*verbs), *headers)
    assert str(refused.value) == message


def test_constrained_impersonation_refuses_system_masters():
    masters = [BOB, ("impersonate-group", "system:masters")]
    constrained = StubAuthorizer("impersonate:user-info", "impersonate-on:user-info:list")
    with pytest.raises(Forbidden, match="impersonating the system:masters group is not allowed"):
        impersonator_of(constrained).impersonate(request(), read(masters))


def test_last_successful_impersonation_mode_is_tried_first():
    permits = StubAuthorizer("impersonate")
    impersonator = impersonator_of(permits)
    assert impersonator.impersonate(request(), read([BOB])).constraint == ""
    permits.verbs = ("none",)
    with pytest.raises(Forbidden, match='cannot impersonate resource "users" in API group ""'):
        impersonator.impersonate(request(), read([BOB]))


async def test_impersonation_attempts_are_counted_by_mode_and_decision():
    registry = MetricsRegistry()
    metrics = ImpersonationMetrics(registry)
    permits = StubAuthorizer("impersonate")
    impersonator_of(permits, metrics).impersonate(request(), read([("impersonate-user", "jane")]))
    with pytest.raises(Forbidden):
        impersonator_of(StubAuthorizer("get"), metrics).impersonate(
            request(), read([("impersonate-user", "jane")])
        )
    counted = {
        (family.name.removeprefix("apiserver_impersonation_"), *values): value
        for family, samples in registry.collect()
        for values, value in samples
        if family.name.endswith("_total")
    }
    assert counted == {
        ("attempts_total", "legacy", "allowed"): 1,
        ("attempts_total", "", "denied"): 1,
        ("authorization_attempts_total", "user-info", "denied"): 2,
        ("authorization_attempts_total", "legacy", "allowed"): 1,
        ("authorization_attempts_total", "legacy", "denied"): 1,
    }
