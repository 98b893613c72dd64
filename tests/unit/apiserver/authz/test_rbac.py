"""RBAC decisions equal those of a simple reference implementation that evaluates every rule in turn."""

import random  # noqa: TID251 - seeded

import orjson
import pytest

from mockube.apiserver.authz.chain import Attributes, Decision
from mockube.apiserver.authz.rbac.authorizer import RBAC
from mockube.apiserver.authz.rbac.escalation import describe, escalation
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User

GROUP = "rbac.authorization.k8s.io"
VERBS = ("get", "list", "create", "*")
GROUPS = ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "deployments", "*/log", "*/scale", "*")
NAMES = ("a", "b", "")
PATHS = ("/healthz", "/healthz/etcd", "/api/*", "/*", "*")
USERS = ("alice", "bob", "system:serviceaccount:ns1:robot")
TEAMS = ("dev", "ops")
NAMESPACES = ("ns1", "ns2")


class Roles:
    """Roles and bindings: the authorizer gets them as changes, the reference implementation as objects."""

    def __init__(self):
        self.objects = {}
        self.authorizer = RBAC(RBACPolicy())

    def put(self, resource, name, namespace="", **content):
        tree = {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **content}
        key = f"{resource}/{namespace}/{name}".encode()
        before = self.objects.get((resource, namespace, name))
        self.objects[resource, namespace, name] = tree
        kind = ChangeKind.ADDED if before is None else ChangeKind.MODIFIED
        self.authorizer.change(resource, Change(kind, StoredObject(key, orjson.dumps(tree), 1), None, 0.0))

    def remove(self, resource, name, namespace=""):
        tree = self.objects.pop((resource, namespace, name), None)
        if tree is not None:
            key = f"{resource}/{namespace}/{name}".encode()
            gone = StoredObject(key, orjson.dumps(tree), 2)
            self.authorizer.change(resource, Change(ChangeKind.DELETED, gone, None, 0.0))

    def allows(self, question):
        """Return the decision of the reference implementation."""
        user, namespace = question.user, question.namespace
        for (resource, place, _), binding in self.objects.items():
            if resource not in ("clusterrolebindings", "rolebindings") or (place and place != namespace):
                continue
            if not any(matches_subject(subject, user, place) for subject in binding["subjects"]):
                continue
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            role = ("roles", place, name) if kind == "Role" else ("clusterroles", "", name)
            rules = self.objects.get(role, {}).get("rules", ())
            if any(permits(rule, question) for rule in rules):
                return True
        return False


def matches_subject(subject, user, place):
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return user.name == name
    if kind == "Group":
        return name in user.groups
    namespace = subject.get("namespace") or place
    return bool(namespace) and user.name == f"system:serviceaccount:{namespace}:{name}"


def permits(rule, question):
    if not {"*", question.verb} & set(rule["verbs"]):
        return False
    if question.path:
        urls = rule.get("nonResourceURLs", ())
        return any(
            url in ("*", question.path) or (url.endswith("*") and question.path.startswith(url.rstrip("*")))
            for url in urls
        )
    whole = "/".join(filter(None, (question.resource, question.subresource)))
    wanted = {"*", whole} | ({f"*/{question.subresource}"} if question.subresource else set())
    if not {"*", question.group} & set(rule.get("apiGroups", ())):
        return False
    if not wanted & set(rule.get("resources", ())):
        return False
    return not rule.get("resourceNames") or question.name in rule["resourceNames"]


class RandomPolicies:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def choose_several(self, values, minimum=1):
        return self.random.sample(values, self.random.randint(minimum, min(len(values), 3)))

    def choose(self, values):
        return self.random.choice(values)

    def rule(self, *, cluster):
        if cluster and self.random.random() < 0.3:
            return {"verbs": self.choose_several(VERBS), "nonResourceURLs": self.choose_several(PATHS)}
        rule = {
            "verbs": self.choose_several(VERBS),
            "apiGroups": self.choose_several(GROUPS),
            "resources": self.choose_several(RESOURCES),
        }
        return rule | ({"resourceNames": self.choose_several(NAMES)} if self.random.random() < 0.3 else {})

    def subject(self):
        kind = self.choose(("User", "Group", "ServiceAccount"))
        if kind == "ServiceAccount":
            namespace = self.choose(("", *NAMESPACES))
            return {"kind": kind, "name": "robot", **({"namespace": namespace} if namespace else {})}
        return {"kind": kind, "name": self.choose(USERS if kind == "User" else TEAMS)}

    def change(self, roles):
        namespace = self.choose(NAMESPACES)
        resource = self.choose(("roles", "clusterroles", "rolebindings", "clusterrolebindings"))
        cluster = resource.startswith("cluster")
        place, name = "" if cluster else namespace, self.choose("xyz")
        if self.random.random() < 0.2:
            roles.remove(resource, name, place)
        elif resource.endswith("roles"):
            rules = [self.rule(cluster=cluster) for _ in range(self.random.randint(0, 2))]
            roles.put(resource, name, place, rules=rules)
        else:
            kind = "ClusterRole" if cluster else self.choose(("Role", "ClusterRole"))
            role = {"apiGroup": GROUP, "kind": kind, "name": self.choose("xyz")}
            subjects = [self.subject() for _ in range(self.random.randint(0, 2))]
            roles.put(resource, name, place, roleRef=role, subjects=subjects)

    def question(self):
        user = User(name=self.choose(USERS), groups=tuple(self.choose_several(TEAMS, 0)))
        if self.random.random() < 0.2:
            return Attributes(user=user, verb=self.choose(VERBS), path=self.choose(PATHS[:-1]))
        resource, _, subresource = self.choose(RESOURCES[:3]).partition("/")
        return Attributes(
            user=user,
            verb=self.choose(VERBS[:3]),
            group=self.choose(GROUPS),
            resource=resource,
            subresource=subresource,
            namespace=self.choose(("", *NAMESPACES)),
            name=self.choose(NAMES),
        )


@pytest.mark.parametrize("seed", range(10))
def test_rbac_decision_matches_reference(seed):
    """2,000 requests for each seed, with changes of the policy between them."""
    dice, roles = RandomPolicies(seed), Roles()
    allowed = 0
    for number in range(2000):
        if number % 7 == 0:
            dice.change(roles)
        question = dice.question()
        decision, reason = roles.authorizer.decide(question)
        expected = roles.allows(question)
        assert (decision is Decision.ALLOW) == expected, question
        assert not expected or reason.startswith("RBAC: allowed by ")
        allowed += expected
    assert 100 < allowed < 1900


def world_with_binding(kind, name, *, role="r", rules=None, namespace="ns1"):
    roles = Roles()
    if rules is not None:
        roles.put("roles", role, namespace, rules=rules)
    reference = {"apiGroup": GROUP, "kind": "Role", "name": role}
    roles.put("rolebindings", "b", namespace, roleRef=reference, subjects=[{"kind": kind, "name": name}])
    return roles


PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


def decide(roles, user, **more):
    question = Attributes(user=user, verb="get", resource="pods", namespace="ns1", **more)
    return roles.authorizer.decide(question)


@pytest.mark.parametrize(
    ("kind", "name", "user", "subject"),
    [
        ("User", "alice", User(name="alice"), 'User "alice"'),
        ("Group", "dev", User(name="x", groups=("dev",)), 'Group "dev"'),
        (
            "ServiceAccount",
            "robot",
            User(name="system:serviceaccount:ns1:robot"),
            'ServiceAccount "robot/ns1"',
        ),
    ],
)
def test_rbac_reason_names_binding_role_and_subject(kind, name, user, subject):
    reason = f'RBAC: allowed by RoleBinding "b/ns1" of Role "r" to {subject}'
    assert decide(world_with_binding(kind, name, rules=[PODS]), user) == (Decision.ALLOW, reason)


def test_missing_role_is_named():
    reason = 'RBAC: role.rbac.authorization.k8s.io "r" not found'
    assert decide(world_with_binding("User", "alice"), User(name="alice")) == (Decision.NO_OPINION, reason)


def test_cached_rules_of_user_are_dropped_after_change():
    roles = world_with_binding("User", "alice", rules=[PODS])
    assert decide(roles, User(name="alice"))[0] is Decision.ALLOW
    roles.put("roles", "r", "ns1", rules=[])
    assert decide(roles, User(name="alice"))[0] is Decision.NO_OPINION
    roles.put("roles", "r", "ns1", rules=[PODS])
    roles.remove("rolebindings", "b", "ns1")
    assert decide(roles, User(name="alice"))[0] is Decision.NO_OPINION


def test_change_in_one_namespace_keeps_cached_decisions_of_others():
    roles = world_with_binding("User", "alice", rules=[PODS])
    decide(roles, User(name="alice"))
    cached = roles.authorizer._grants["ns1"]
    roles.put("roles", "r", "ns2", rules=[PODS])
    assert roles.authorizer._grants["ns1"] is cached
    roles.put("clusterroles", "r", "", rules=[PODS])
    assert not roles.authorizer._grants


def test_unreadable_binding_drops_cached_decisions_of_all():
    roles = world_with_binding("User", "alice", rules=[PODS])
    decide(roles, User(name="alice"))
    with pytest.raises(KeyError):
        roles.put("rolebindings", "b", "ns2", subjects=[])
    assert not roles.authorizer._grants


@pytest.mark.thorough
def test_decision_cache_is_bounded():
    roles = world_with_binding("User", "alice", rules=[PODS])
    for number in range(5000):
        decide(roles, User(name=f"u{number}"))
        decide(roles, User(name="alice"), subresource=str(number))
        roles.authorizer.decide(
            Attributes(user=User(name="alice"), verb="get", resource="pods", namespace=f"n{number}")
        )
    cached = [grants for users in roles.authorizer._grants.values() for grants in users.values()]
    assert 1 < len(cached) <= 4096
    assert all(len(grants._answers) <= 1024 for grants in cached)


def test_escalation_lists_missing_rights():
    roles = world_with_binding("User", "alice", rules=[PODS])
    wanted = [
        {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
    ]
    user = User(name="alice", groups=("dev",))
    assert escalation(roles.authorizer.policy, user, "ns1", wanted) == (
        'user "alice" (groups=["dev"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )
    assert escalation(roles.authorizer.policy, user, "ns1", [PODS | {"resourceNames": ["a"]}]) == ""


def test_right_to_one_name_does_not_cover_all_names():
    roles = world_with_binding("User", "alice", rules=[PODS | {"resourceNames": ["a"]}])
    user = User(name="alice")
    assert escalation(roles.authorizer.policy, user, "ns1", [PODS | {"resourceNames": ["a"]}]) == ""
    assert "Resources" in escalation(roles.authorizer.policy, user, "ns1", [PODS])


@pytest.mark.thorough
def test_role_with_too_many_rights_is_refused_before_comparison():
    names = [str(number) for number in range(200)]
    rule = {"verbs": names, "apiGroups": names, "resources": names}
    found = escalation(RBACPolicy(), User(name="alice"), "ns1", [rule])
    assert found == "the role has more than 20000 single rights"


def test_rule_description_has_upstreams_order():
    rule = {"verbs": ["get"], "resourceNames": ["n"], "resources": ["pods"], "apiGroups": [""]}
    assert describe(rule) == '{APIGroups:[""], Resources:["pods"], ResourceNames:["n"], Verbs:["get"]}'
