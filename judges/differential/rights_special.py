"""Topics of `rights` about nodes, policies and claims, whose fields need permissions of their own."""

from judges.differential.conversations import APPLY, MERGE
from judges.differential.rights_topics import HERE, VERBS, WRITES, Topic, request, right


class Nodes(Topic):
    """Requests of a node's user, under the Node authorizer and NodeRestriction, with or without more rights."""

    rights = (
        right("", "nodes nodes/status pods pods/status", VERBS, ["x"]),
        right("", "pods configmaps secrets", ["get", "create", "delete", "update"], ["x", "z"]),
        right("", "serviceaccounts/token", ["create"], ["default"]),
        right("coordination.k8s.io", "leases", WRITES),
    )

    @property
    def node(self):
        return f"rights-{self.number}"

    def setup(self):
        pod = {
            "metadata": {"name": "x"},
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "secret": {"secretName": "x"}}],
            },
        }
        other = {"metadata": {"name": "y"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        return [
            request("POST", "/api/v1/nodes", {"metadata": {"name": self.node}}),
            request("POST", "/api/v1/nodes", {"metadata": {"name": f"{self.node}-other"}}),
            request("POST", f"{HERE}/pods", pod),
            request("POST", f"{HERE}/pods", other),
            request("POST", f"{HERE}/secrets", {"metadata": {"name": "x"}}),
            request("POST", f"{HERE}/secrets", {"metadata": {"name": "z"}}),
        ]

    def request(self, random):
        as_node = {"Authorization": f"Bearer node-{self.number}"} if random.random() < 0.8 else {}
        sent = random.choice((self._node, self._pod, self._read, self._token, self._other))(random)
        return sent | {"headers": sent.get("headers", {}) | as_node}

    def _node(self, random):
        name = random.choice((self.node, self.node, f"{self.node}-other"))
        path = f"/api/v1/nodes/{name}{random.choice(('', '', '/status'))}"
        labels = (
            "a",
            "kubernetes.io/os",
            "kubernetes.io/x",
            "node-restriction.kubernetes.io/a",
            "kubelet.kubernetes.io/a",
        )
        body = random.choice(
            (
                {"metadata": {"labels": {random.choice(labels): "b"}}},
                {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
                {
                    "metadata": {
                        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]
                    }
                },
                {"spec": {"unschedulable": True}},
            )
        )
        applied = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        return random.choice(
            (
                request("PATCH", path, body, MERGE),
                request("PATCH", path, body, MERGE),
                request(
                    "PATCH",
                    f"{path}?fieldManager=f&force=true",
                    applied | body | {"metadata": {"name": name}},
                    APPLY,
                ),
                request("POST", "/api/v1/nodes?dryRun=All", applied),
                request("DELETE", f"/api/v1/nodes/{name}?dryRun=All"),
            )
        )

    def _pod(self, random):
        name = random.choice("xxyz")
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": "u", "controller": True}
        pod = {
            "metadata": {
                "name": "mirror",
                "annotations": random.choice(({}, {"kubernetes.io/config.mirror": "a"})),
                "ownerReferences": random.choice(([], [owner])),
            },
            "spec": {
                "nodeName": random.choice((self.node, "n")),
                "containers": [{"name": "c", "image": "i"}],
            },
        }
        status = {"status": {"message": "a"}, "metadata": random.choice(({}, {"labels": {"a": "b"}}))}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        dry = random.choice(("", "?dryRun=All"))
        return random.choice(
            (
                request("POST", f"{HERE}/pods{dry}", pod),
                request("PATCH", f"{HERE}/pods/{name}/status{dry}", status, MERGE),
                request("PATCH", f"{HERE}/pods/{name}{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                request("DELETE", f"{HERE}/pods/{name}?dryRun=All"),
                request("POST", f"{HERE}/pods/{name}/eviction?dryRun=All", eviction),
                request(
                    "PATCH", f"{HERE}/pods/{name}/resize{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE
                ),
            )
        )

    def _read(self, random):
        name = random.choice("xxzy")
        return random.choice(
            (
                request("GET", f"{HERE}/secrets/{name}"),
                request("GET", f"{HERE}/configmaps/{name}"),
                request("GET", f"{HERE}/pods/{name}"),
                request("GET", f"{HERE}/secrets?fieldSelector=metadata.name%3D{name}"),
                request("GET", f"/api/v1/nodes/{random.choice((self.node, f'{self.node}-other'))}"),
                request(
                    "GET", f"{HERE}/pods?fieldSelector=spec.nodeName%3D{random.choice((self.node, 'n'))}"
                ),
                request("GET", f"{HERE}/serviceaccounts/default"),
            )
        )

    def _token(self, random):
        bound = {"apiVersion": "v1", "kind": "Pod", "name": random.choice("xy"), "uid": "u"}
        spec = random.choice(({}, {"boundObjectRef": bound}, {"boundObjectRef": bound | {"uid": ""}}))
        spec = spec | random.choice(({"audiences": ["a"]}, {"audiences": ["a", "b"]}, {}))
        return request("POST", f"{HERE}/serviceaccounts/default/token", {"spec": spec})

    def _other(self, random):
        name = random.choice((self.node, f"{self.node}-other"))
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}
        place = (
            f"/apis/coordination.k8s.io/v1/namespaces/{random.choice(('${ns}', 'kube-node-lease'))}/leases"
        )
        csi = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": []},
        }
        device_slice = {
            "metadata": {"name": "${ns}-s"},
            "spec": {
                "nodeName": name,
                "driver": "d.example",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            },
        }
        return random.choice(
            (
                request("PUT", f"{place}/{name}?dryRun=All", lease),
                request("POST", f"{place}?dryRun=All", lease),
                request("PATCH", f"{place}/{name}?fieldManager=f&dryRun=All", lease, APPLY),
                request("POST", "/apis/storage.k8s.io/v1/csinodes?dryRun=All", csi),
                request("DELETE", f"/apis/storage.k8s.io/v1/csinodes/{name}"),
                request("POST", "/apis/resource.k8s.io/v1/resourceslices?dryRun=All", device_slice),
            )
        )


class Policies(Topic):
    """Admission policies and bindings with parameters, which need the permission to read these."""

    GROUP = "admissionregistration.k8s.io"
    _ALL = "validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies mutatingadmissionpolicybindings"
    rights = (
        *[right(GROUP, _ALL, ["create", "update", "patch"])] * 2,
        right("", "configmaps", ["get", "list"], ["x"]),
        right("*", "*", ["get", "list"], ["x", "*"]),
    )
    KINDS = (
        {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Nope"}, None,
        {"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "rights.example/v1", "kind": "Thing"},
    )  # fmt: skip

    def setup(self):
        path = f"/apis/{self.GROUP}/v1"
        return [
            request(
                "POST",
                f"{path}/{kind.lower()}admissionpolicies",
                self._policy(kind, "${ns}-p", self.KINDS[0]),
            )
            for kind in ("Validating", "Mutating")
        ]

    def _policy(self, kind, name, params):
        rule = {
            "apiGroups": ["rights.none"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["none"],
        }
        spec = {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Ignore"}
        if kind == "Validating":
            spec["validations"] = [{"expression": "true"}]
        else:
            patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
            spec |= {"mutations": [patch], "reinvocationPolicy": "Never"}
        if params:
            spec["paramKind"] = params
        return {
            "apiVersion": f"{self.GROUP}/v1",
            "kind": f"{kind}AdmissionPolicy",
            "metadata": {"name": name},
            "spec": spec,
        }

    def _binding(self, random, kind, name):
        params = random.choice(
            (
                {"name": "x", "namespace": "${ns}"},
                {"name": "x"},
                {"selector": {}},
                {"selector": {}, "namespace": "${ns}"},
            )
        )
        spec = {"policyName": random.choice(("${ns}-p", "${ns}-nope"))}
        if random.random() < 0.8:
            spec["paramRef"] = params | {"parameterNotFoundAction": "Allow"}
        if kind == "Validating":
            spec["validationActions"] = ["Audit"]
        return {
            "apiVersion": f"{self.GROUP}/v1",
            "kind": f"{kind}AdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": spec,
        }

    def request(self, random):
        kind = random.choice(("Validating", "Mutating"))
        name = random.choice(("${ns}-p", "${ns}-q", "${ns}-q"))
        if random.random() < 0.5:
            plural, body = "policies", self._policy(kind, name, random.choice(self.KINDS))
        else:
            plural, body = "policybindings", self._binding(random, kind, name)
        path = f"/apis/{self.GROUP}/v1/{kind.lower()}admission{plural}"
        dry = random.choice(("", "dryRun=All"))
        return random.choice(
            (
                request("POST", f"{path}?{dry}", body),
                request("POST", f"{path}?{dry}", body),
                request("PUT", f"{path}/{name}?{dry}", body),
                request("PATCH", f"{path}/{name}?{dry}", {"spec": body["spec"]}, MERGE),
                request("PATCH", f"{path}/{name}?{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                request("PATCH", f"{path}/{name}?fieldManager=f&force=true&{dry}", body, APPLY),
            )
        )


class Claims(Topic):
    """The status of a ResourceClaim, whose parts need permissions of their own."""

    PATH = "/apis/resource.k8s.io/v1/namespaces/${ns}/resourceclaims"
    rights = (
        *[right("resource.k8s.io", "resourceclaims/status resourceclaims", ["update", "patch", "get"])] * 2,
        right("resource.k8s.io", "resourceclaims/binding", ["update", "patch"]),
        right(
            "resource.k8s.io",
            "resourceclaims/driver",
            [
                f"{node}-node:{verb}"
                for node in ("arbitrary", "associated")
                for verb in ("update", "patch", "*")
            ],
            ["d.example"],
        ),
    )

    def setup(self):
        requests = [{"name": "r", "exactly": {"deviceClassName": "k"}}]
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
        return [request("POST", self.PATH, claim)]

    def request(self, random):
        result = {"request": "r", "driver": "d.example", "pool": "p", "device": "x"}
        field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        status = {}
        if random.random() < 0.6:
            status["allocation"] = random.choice((allocation, allocation, allocation, None))
        if random.random() < 0.5:
            device = {
                "driver": random.choice(("d.example", "d.example", "e.example")),
                "pool": "p",
                "device": "x",
            }
            status["devices"] = [device | random.choice(({}, {"data": {"a": random.choice("bc")}}))]
        if random.random() < 0.3:
            status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "u"}]
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "status": status,
        }
        dry = random.choice(("", "dryRun=All"))
        path = f"{self.PATH}/c/status"
        return random.choice(
            (
                request("PATCH", f"{path}?{dry}", {"status": status}, MERGE),
                request("PATCH", f"{path}?{dry}", {"status": status}, MERGE),
                request("PATCH", f"{path}?fieldManager=f&force=true&{dry}", body, APPLY),
                request("PATCH", f"{path}?{dry}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
                request("GET", path),
            )
        )
