"""Topics of `rights` whose requests need a second permission, which roles give to some users only."""

import copy

from judges.differential.conversations import APPLY, MERGE
from judges.differential.rights_topics import (
    HERE,
    RBAC,
    VERBS,
    WRITES,
    Topic,
    recorded_bodies,
    request,
    right,
)

_RBAC_GROUP = "rbac.authorization.k8s.io"


class Escalation(Topic):
    """Roles and bindings, which need the rights that they give, or escalate and bind."""

    GRANTED = (
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["x"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    )
    rights = (
        right(_RBAC_GROUP, "roles clusterroles", [*WRITES, "escalate", "bind", "get"], ["more"]),
        right(_RBAC_GROUP, "rolebindings clusterrolebindings", WRITES, ["more"]),
        right(_RBAC_GROUP, "roles clusterroles", ["escalate"], ["more", "${ns}-more"]),
        right(_RBAC_GROUP, "roles clusterroles", ["bind"], ["more", "view", "${ns}-more"], named=0.5),
        right("", "configmaps", ["get", "list"], ["x"]),
    )

    def setup(self):
        path = f"{RBAC}/namespaces/${{ns}}"
        role = {"metadata": {"name": "more"}, "rules": [self.GRANTED[0]]}
        binding = {"metadata": {"name": "more"}, "subjects": [], "roleRef": self._reference("Role", "more")}
        cluster_role = {"metadata": {"name": "${ns}-more"}, "rules": [self.GRANTED[0]]}
        return [
            request("POST", f"{path}/roles", role),
            request("POST", f"{path}/rolebindings", binding),
            request("POST", f"{RBAC}/clusterroles", cluster_role),
        ]

    def _reference(self, kind, name):
        return {"apiGroup": _RBAC_GROUP, "kind": kind, "name": name}

    def request(self, random):
        place, name = random.choice((("/namespaces/${ns}", "more"), ("", "${ns}-more")))
        scope = "" if place else "cluster"
        name = random.choice((name, name, f"{name}2"))
        if random.random() < 0.5:
            plural, kind = f"{scope}roles", f"{scope.title()}Role"
            rules = random.sample(self.GRANTED, random.choice((0, 1, 1, 2)))
            body = {"rules": rules}
            if scope and random.random() < 0.3:
                body["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"never": "there"}}]}
        else:
            plural, kind = f"{scope}rolebindings", f"{scope.title()}RoleBinding"
            role = random.choice(
                (("Role", "more"), ("Role", "nope"), ("ClusterRole", "view"), ("ClusterRole", "${ns}-more"))
            )
            subject = {"kind": "User", "apiGroup": _RBAC_GROUP, "name": "nobody"}
            body = {"subjects": [subject], "roleRef": self._reference(*role)}
        path = f"{RBAC}{place}/{plural}"
        body = {"apiVersion": f"{_RBAC_GROUP}/v1", "kind": kind.replace("Clusterrole", "ClusterRole")} | body
        body["metadata"] = {"name": name}
        dry = random.choice(("", "dryRun=All"))
        return random.choice(
            (
                request("POST", f"{path}?{dry}", body),
                request("PUT", f"{path}/{name}?{dry}", body),
                request("PATCH", f"{path}/{name}?{dry}", body, MERGE),
                request("PATCH", f"{path}/{name}?{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                request("PATCH", f"{path}/{name}?fieldManager=f&force=true&{dry}", body, APPLY),
            )
        )


class Impersonation(Topic):
    """Requests as another user, by the legacy verb and the constrained modes."""

    ON = ("get", "create", "list")
    MODES = ("user-info", "arbitrary-node", "serviceaccount", "associated-node")
    rights = (
        right("", "users groups serviceaccounts", ["impersonate"], ["bob", "team", "default"]),
        right(
            "authentication.k8s.io",
            "uids userextras userextras/rights.example/a userextras/*",
            ["impersonate", "impersonate:user-info"],
            ["1", "v"],
        ),
        right("*", "*", ["impersonate"], []),
        *(
            right(
                "authentication.k8s.io",
                "users groups serviceaccounts nodes uids",
                [f"impersonate:{mode}"],
                ["bob", "team", "n1", "default"],
            )
            for mode in MODES
        ),
        right(
            "authentication.k8s.io",
            "users groups uids userextras/rights.example/a",
            ["impersonate:user-info"],
            ["bob", "team", "1", "v"],
        ),
        *(
            right(
                ",authentication.k8s.io",
                "configmaps selfsubjectreviews",
                [f"impersonate-on:{mode}:{verb}" for verb in ("get", "create", "list")],
                ["x"],
                named=0.1,
            )
            for mode in ("user-info", "user-info", "arbitrary-node", "serviceaccount")
        ),
    )
    NAMES = (
        *("bob", "bob", "bob", "system:node:n1", "system:node:N_1", "system:anonymous", ""),
        *("system:serviceaccount:${ns}:default", "system:serviceaccount:${ns}:other", "system:admin"),
    )

    def setup(self):
        return [request("POST", f"{HERE}/configmaps", {"metadata": {"name": "x"}})]

    def request(self, random):
        headers = {"Impersonate-User": random.choice(self.NAMES)}
        if random.random() < 0.35:
            groups = ("team", "team", "system:masters", "system:nodes", "system:unauthenticated", "")
            headers["Impersonate-Group"] = random.choice(groups)
        if random.random() < 0.2:
            headers["Impersonate-Uid"] = random.choice(("1", "2"))
        if random.random() < 0.3:
            key = random.choice(
                ("rights.example%2fa", "rights.example%2fa", "rights.example%2fb", "plain", "x%2f%41")
            )
            headers[f"Impersonate-Extra-{key}"] = random.choice(("v", "w", ""))
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return random.choice(
            (
                request("GET", f"{HERE}/configmaps/x", **headers),
                request("GET", f"{HERE}/configmaps?limit=1", **headers),
                request("GET", "/version", **headers),
                *[request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, **headers)]
                * 3,
            )
        )


class Certificates(Topic):
    """Approval and signing of certificate requests, which need a permission for their signer."""

    PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    SIGNERS = ("rights.example/signer", "kubernetes.io/kube-apiserver-client")
    rights = (
        right("certificates.k8s.io", "certificatesigningrequests", ["create", "get", "update", "patch"]),
        *[
            right(
                "certificates.k8s.io",
                "certificatesigningrequests/approval certificatesigningrequests/status",
                ["get", "update", "patch"],
            )
        ]
        * 2,
        *[
            right(
                "certificates.k8s.io",
                "signers",
                ["approve", "sign"],
                [*SIGNERS, "rights.example/*", "kubernetes.io/*"],
                named=0.8,
            )
        ]
        * 2,
    )

    def setup(self):
        body = copy.deepcopy(recorded_bodies()[self.PATH][0])
        bodies = []
        for index, signer in enumerate(self.SIGNERS):
            body["metadata"] = {"name": f"${{ns}}-{index}"}
            body["spec"]["signerName"] = signer
            bodies.append(request("POST", self.PATH, copy.deepcopy(body)))
        return bodies

    def request(self, random):
        one = f"{self.PATH}/${{ns}}-{random.choice('001')}"
        kind = random.choice(("Approved", "Denied", "Failed"))
        conditions = [{"type": kind, "status": "True", "reason": "r", "message": "m"}]
        dry = random.choice(("", "?dryRun=All"))
        inner = random.choice(("approval", "status"))
        body = {"status": {"conditions": conditions}}
        applied = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": one.rpartition("/")[2]},
        }
        return random.choice(
            (
                request("PATCH", f"{one}/{inner}{dry}", body, MERGE),
                request("PATCH", f"{one}/{inner}{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                request("PATCH", f"{one}/{inner}?fieldManager=f&force=true", applied | body, APPLY),
                request("GET", f"{one}/{inner}"),
                request("PATCH", one + dry, {"metadata": {"labels": {"a": "b"}}}, MERGE),
            )
        )


class Owners(Topic):
    """Owner references: a change needs the verb delete, one that blocks a deletion the finalizers of the owner."""

    OWNERS = (
        ("apps/v1", "Deployment", "d"), ("v1", "ConfigMap", "x"), ("v1", "Node", "n"), ("batch/v1", "Nope", "n"),
        ("rights.example/v1", "Thing", "t"),
    )  # fmt: skip
    rights = (
        right("", "configmaps pods", WRITES, ["x", "y"]),
        right("", "configmaps", ["create", "update", "patch"]),
        right("apps", "deployments/finalizers", ["update"], ["d"]),
        right("*", "*/finalizers configmaps/finalizers nodes/finalizers things/finalizers", ["update"]),
    )

    def setup(self):
        return [request("POST", f"{HERE}/configmaps", {"metadata": {"name": "x"}})]

    def request(self, random):
        owners = []
        for api_version, kind, name in random.sample(self.OWNERS, random.choice((0, 1, 1, 2))):
            owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"u-{name}-{kind}"}
            owners.append(owner | random.choice(({}, {"blockOwnerDeletion": True}, {"controller": False})))
        name = random.choice(("x", "x", "y"))
        path = f"{HERE}/configmaps"
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": owners},
        }
        dry = random.choice(("", "dryRun=All"))
        return random.choice(
            (
                request("POST", f"{path}?{dry}", body),
                request("PUT", f"{path}/{name}?{dry}", body),
                request("PATCH", f"{path}/{name}?{dry}", {"metadata": {"ownerReferences": owners}}, MERGE),
                request("PATCH", f"{path}/{name}?fieldManager=f&force=true&{dry}", body, APPLY),
                request("DELETE", f"{path}/{name}?{dry}"),
            )
        )


class Streams(Topic):
    """Subresources that connect to a pod: a GET needs the verb create as well."""

    rights = (
        right(
            "", "pods/exec pods/attach pods/portforward pods/log pods/proxy pods/*", ["get", "create"], ["x"]
        ),
        right("", "pods/exec pods/attach pods/portforward", ["get"]),
        right(
            "", "services/proxy nodes/proxy nodes/metrics nodes/stats */proxy", ["get", "create", "update"]
        ),
        right("", "pods/eviction pods/binding serviceaccounts/token bindings", ["create"], ["x", "default"]),
    )

    def setup(self):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        return [request("POST", f"{HERE}/pods", {"metadata": {"name": "x"}, "spec": spec})]

    def request(self, random):
        pod = f"{HERE}/pods/{random.choice('xxy')}"
        dry = random.choice(("", "?dryRun=All"))
        token = {"spec": {"audiences": ["a"]}}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod[-1]}}
        account = random.choice(("default", "nope"))
        if random.random() < 0.6:
            inner = random.choice(
                ("exec?command=ls", "attach?stdout=1", "portforward?ports=80", "log", "proxy/")
            )
            return request(random.choice(("GET", "POST")), f"{pod}/{inner}")
        return random.choice(
            (
                request("POST", f"{pod}/eviction{dry}", eviction),
                request("POST", f"{pod}/binding?dryRun=All", {"target": {"kind": "Node", "name": "n"}}),
                request("POST", f"{HERE}/serviceaccounts/{account}/token{dry}", token),
                request("GET", f"{HERE}/services/nope/proxy/"),
                request("GET", "/api/v1/nodes/nope/proxy/"),
            )
        )


class Reviews(Topic):
    """Reviews of permissions, and paths without resources."""

    rights = (
        right("authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews", ["create"]),
        right("authentication.k8s.io", "tokenreviews", ["create"]),
        {"paths": ["/livez/*", "/livez/ping", "/logs*", "/flagz", "*"], "verbs": ["get", "post"]},
        right("", "configmaps secrets", VERBS, ["x"]),
        right("*", "*", ["get", "*"], ["x"]),
    )

    def request(self, random):
        if random.random() < 0.3:
            paths = ("/livez/ping", "/logs", "/apis", "/nope", "/readyz/ping", "/api/v1/nope")
            return request(random.choice(("GET", "GET", "POST")), random.choice(paths))
        attributes = {
            "verb": random.choice((*VERBS, "*")),
            "namespace": random.choice(("${ns}", "default", "")),
            "group": random.choice(("", "apps", "*")),
            "resource": random.choice(("configmaps", "secrets", "*")),
            "name": random.choice(("", "x")),
            "subresource": random.choice(("", "", "status")),
        }
        group = "/apis/authorization.k8s.io/v1"
        return random.choice(
            (
                request(
                    "POST", f"{group}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}
                ),
                request("POST", f"{group}/selfsubjectrulesreviews", {"spec": {"namespace": "${ns}"}}),
                request(
                    "POST",
                    f"{group}/subjectaccessreviews",
                    {"spec": {"user": f"rights-{self.number}-0", "resourceAttributes": attributes}},
                ),
                request(
                    "POST",
                    f"{group}/namespaces/${{ns}}/localsubjectaccessreviews",
                    {
                        "metadata": {"namespace": "${ns}"},
                        "spec": {"user": "bob", "resourceAttributes": attributes | {"namespace": "${ns}"}},
                    },
                ),
            )
        )
