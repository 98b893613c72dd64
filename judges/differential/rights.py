"""Requests of users with random roles: what they are allowed, and what needs a second permission.

Each conversation has users of its own, who are authenticated by tokens. Their roles contain a few of the rights that the
conversation's topics use, so that some requests lack one of several permissions. `rights_topics` has the topics.
"""

import copy
import itertools
import re
from collections.abc import Generator, Iterator
from random import Random

from judges.differential import rights_topics
from judges.differential.rights_nested import (
    Certificates,
    Escalation,
    Impersonation,
    Owners,
    Reviews,
    Streams,
)
from judges.differential.rights_special import Claims, Nodes, Policies
from judges.differential.rights_topics import RBAC, Conversation, KindTopic

TOPICS = (Certificates, Claims, Escalation, Impersonation, Nodes, Owners, Policies, Reviews, Streams)
MAX_CONVERSATIONS = 2_000
USERS = 3
STEPS = 36
"""Requests of the users in one conversation."""
PLUGINS = "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"
"""The plugins that need rights and are off by default."""
MARKERS = "rights.example"
"""The group of a right that each role has, by which a conversation waits until the role is effective."""
REFUSED = re.compile(
    r"Forbidden: (changing status\.|user \S+ |unable to \w+ \w+ .* to determine minimum required permissions)"
)
"""In the errors of an invalid object, those that upstream's validation adds for a missing permission."""


def tokens() -> str:
    """Return the lines of a token file with the users of all conversations, who have their tokens as names."""
    lines = []
    for number in range(MAX_CONVERSATIONS):
        lines += [f'{name},{name},{name},"team"' for name in _users(number)]
        lines.append(f'node-{number},system:node:rights-{number},node-{number},"system:nodes"')
    return "\n".join(lines) + "\n"


def is_refused(answer: dict) -> bool:
    """Return whether a response refuses the request for a missing permission."""
    body = answer["body"]
    message = body.get("message") if isinstance(body, dict) else ""
    return answer["status"] in (401, 403) or bool(answer["status"] == 422 and REFUSED.search(message or ""))


def cases(seed: int, resources) -> Iterator[Generator[dict, dict, None]]:
    """Yield conversations; `resources` are keyed by their paths."""
    kinds = rights_topics.kinds(resources)
    for number in range(MAX_CONVERSATIONS):
        yield _case(Random(f"rights/{seed}/{number}"), number, kinds)


def prepare(servers) -> None:
    """Create the definition of the custom kind that conversations use, and wait until it is served."""
    for server in servers:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        server.send({"method": "POST", "path": path, "body": rights_topics.DEFINITION})
        _wait(server, {"method": "GET", "path": "/apis/rights.example/v1/things"}, lambda _: True)
        # Upstream creates its default roles and bindings after it began to serve.
        attributes = {
            "group": "authorization.k8s.io",
            "resource": "selfsubjectrulesreviews",
            "verb": "create",
        }
        _wait_for_right(server, {"groups": ["system:authenticated"], "resourceAttributes": attributes})


def wait_for_default_roles(servers) -> None:
    """Wait until users have the rights of upstream's roles, which a server creates after it began to serve."""
    attributes = {"group": "authorization.k8s.io", "resource": "selfsubjectrulesreviews", "verb": "create"}
    for server in servers:
        _wait_for_right(server, {"groups": ["system:authenticated"], "resourceAttributes": attributes})


def wait_for_roles(servers, markers) -> None:
    """Wait until every server allows each user the right that marks its role."""
    for server, (user, role) in itertools.product(servers, markers):
        attributes = {"group": MARKERS, "resource": "markers", "verb": "get", "name": role}
        attributes["namespace"] = role.rpartition("-r")[0]
        _wait_for_right(server, {"user": user, "resourceAttributes": attributes})


def _wait_for_right(server, spec):
    request = _post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    _wait(server, request, lambda body: body["status"]["allowed"])


def _wait(server, request, holds):
    for _ in range(1000):
        answer = server.send(request)
        if answer["status"] < 300 and holds(answer["body"]):
            return
    raise SystemExit(f"{server.url.netloc} did not become ready for {request['path']}")


def _users(number):
    return [f"rights-{number}-{index}" for index in range(USERS)]


def _case(random, number, kinds):
    users = _users(number)
    conversation = Conversation(number, kinds)
    topics = [KindTopic(random, conversation) for _ in range(random.choice((1, 1, 2)))]
    topics += [topic(random, conversation) for topic in random.sample(TOPICS, random.choice((1, 1, 2)))]
    for topic in topics:
        for request in topic.setup():
            topic.record(request, (yield request))
    markers = []
    for index, user in enumerate([user for user in users for _ in range(random.choice((1, 1, 2)))]):
        name = f"${{ns}}-r{index}"
        yield from _role(random, name, user, topics)
        markers.append([user, name])
    yield {"roles": markers}
    for step in range(STEPS):
        topic = random.choice(topics)
        if step % 12 == 11:  # a user may have deleted an object
            for request in topic.setup():
                topic.record(request, (yield request))
        request = topic.request(random)
        headers = {"Authorization": f"Bearer {random.choice(users)}"} | request.get("headers", {})
        topic.record(request, (yield request | {"headers": headers}))


def _role(random, name, user, topics):
    """Yield the requests that create a role with some of the topics' rights, and bind it to a user."""
    rules = [_rule(random, random.choice(topics)) for _ in range(random.choice((1, 2, 2, 3)))]
    rules.append(
        {"apiGroups": [MARKERS], "resources": ["markers"], "resourceNames": [name], "verbs": ["get"]}
    )
    is_cluster = random.random() < 0.5
    is_everywhere = is_cluster and random.random() < 0.7
    paths = [f["nonResourceURLs"] for f in rules if "nonResourceURLs" in f]
    is_cluster, is_everywhere = is_cluster or bool(paths), is_everywhere or bool(paths)
    place = "" if is_cluster else "/namespaces/${ns}"
    role = {"metadata": {"name": name}, "rules": rules}
    yield _post(f"{RBAC}{place}/{'clusterroles' if is_cluster else 'roles'}", role)
    place = "" if is_everywhere else "/namespaces/${ns}"
    reference = {"kind": "ClusterRole" if is_cluster else "Role", "name": name}
    binding = {
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io"} | reference,
    }
    yield _post(f"{RBAC}{place}/{'clusterrolebindings' if is_everywhere else 'rolebindings'}", binding)


def _rule(random, topic):
    """Return a rule with one to three verbs, some resources, and sometimes names, of a right of a topic."""
    right = copy.deepcopy(random.choice(topic.rights))
    verbs = random.sample(right["verbs"], min(len(right["verbs"]), random.choice((1, 2, 2, 3))))
    if "paths" in right:
        return {"nonResourceURLs": random.sample(right["paths"], 1), "verbs": verbs}
    resources = random.sample(right["resources"], min(len(right["resources"]), random.choice((1, 2, 3))))
    rule = {"apiGroups": right["groups"], "resources": resources, "verbs": verbs}
    if random.random() < 0.1:
        rule["apiGroups"] = ["*"]
    if right["names"] and random.random() < right.get("named", 0.25):
        rule["resourceNames"] = random.sample(right["names"], 1)
    return rule


def _post(path, body):
    return {"method": "POST", "path": path, "body": body}
