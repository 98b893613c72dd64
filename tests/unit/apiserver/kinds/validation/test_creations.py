"""Validation of new objects beyond the recordings: a table for each group of kinds."""

import pytest

from tests.support import field_rules


def create_errors(group, kind, tree, name="a"):
    api_version = f"{group}/v1".lstrip("/")
    where = {"namespace": "ns"} if field_rules.is_namespaced(api_version, kind) else {}
    return field_rules.create_errors(api_version, kind, {"metadata": {"name": name, **where}} | tree)


HOST = {"hostPath": {"path": "/"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
LOCAL = {"local": {"path": "/x"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
SCALED = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
QUEUES = {"queues": 1000, "handSize": 12, "queueLengthLimit": 1}
QUEUED = {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": QUEUES}}}
HOOK = {
    "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://example.com/x"},
}  # fmt: skip
URL_RULE = {"verbs": ["get"], "nonResourceURLs": ["/x*"]}
SCHEMA = {
    "priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 1,
    "rules": [{"subjects": [{"kind": "User", "user": {"name": "*"}}], "nonResourceRules": [URL_RULE]}],
}  # fmt: skip
DEVICES = [{"name": "d", "attributes": {"v": {"version": "1"}}, "capacity": {"/": {"value": "1"}}}]
SLICE = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n", "allNodes": True}
ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
PATHS = [{"path": "/a//b/..", "pathType": "Prefix", "backend": BACKEND}]

CREATIONS = [
    pytest.param("", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"a": "MQ=="}},
                 ['data[a]: Invalid value: "a": duplicate of key present in binaryData'], id="duplicate key"),
    pytest.param("", "ConfigMap", {"data": {"a": "x" * 1048577}},
                 ["[]: Too long: may not be more than 1048576 bytes"], id="ConfigMap too long"),
    pytest.param("", "Secret", {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "W10="}},
                 [('data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array '
                  "into Go value of type map[string]interface {}")], id="docker config of a Secret is not an object"),
    pytest.param("", "Secret", {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eyJhIjoi/yJ9"}},
                 [], id="docker config with an invalid byte"),
    pytest.param("", "Secret", {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eyJhIjoxZTQwMH0="}},
                 [('data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal number 1e400 '
                  "into Go value of type float64")], id="docker config with a number that is too large"),
    pytest.param("", "Node", {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}},
                 [('spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for '
                  "each IP family")], id="two pod CIDRs of one IP family"),
    pytest.param("", "PersistentVolume", {"spec": {**HOST, "persistentVolumeReclaimPolicy": "Recycle"}},
                 ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
                 id="recycled root directory"),
    pytest.param("", "PersistentVolume", {"spec": LOCAL},
                 ["spec.nodeAffinity: Required value: Local volume requires node affinity"], id="local PersistentVolume without node affinity"),
    pytest.param("", "ResourceQuota", {"spec": {"hard": {"services": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}},
                 ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource',
                  'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
                 id="scopes exclude each other"),
    pytest.param("autoscaling", "HorizontalPodAutoscaler", {"spec": {**SCALED, "metrics": [CPU]}},
                 [("spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw "
                  "value or a target utilization")], id="metric without target"),
    pytest.param("autoscaling", "HorizontalPodAutoscaler", {"spec": {**SCALED, "targetCPUUtilizationPercentage": 0}},
                 ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
                 id="v1 errors have v2 paths"),
    pytest.param("policy", "PodDisruptionBudget", {"spec": {"minAvailable": "101%"}},
                 ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%'], id="percentage above 100"),
    pytest.param("networking.k8s.io", "Ingress", {"spec": {"rules": [{"host": "10.0.0.1", "http": {"paths": PATHS}}]}},
                 ['spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address',
                  "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": must not contain '//'",
                  "spec.rules[0].http.paths[0].path: Invalid value: \"/a//b/..\": cannot end with '/..'"],
                 id="an Ingress has a strange host and path"),
    pytest.param("networking.k8s.io", "NetworkPolicy",
                 {"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/9"]}}]}]}},
                 [('spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "11.0.0.0/9": must be a strict subset of '
                  "`cidr`")], id="except outside the CIDR"),
    pytest.param("rbac.authorization.k8s.io", "Role", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
                 ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
                 id="non-resource URLs in a Role"),
    pytest.param("scheduling.k8s.io", "PriorityClass", {"value": 1000000001},
                 ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"], id="priority too high"),
    pytest.param("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", {"spec": QUEUED},
                 [("spec.limited.limitResponse.queuing.handSize: Invalid value: 12: required entropy bits of deckSize "
                  "1000 and handSize 12 should not be greater than 60")], id="hand size too large"),
    pytest.param("storage.k8s.io", "VolumeAttachment",
                 {"spec": {"attacher": "a", "nodeName": "n", "source": {"inlineVolumeSpec": {
                     "accessModes": ["ReadWriteOnce"], "local": {"path": "a"}}}}},
                 ["spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes",
                  "spec.source.inlineVolumeSpec.nodeAffinity: Required value: Local volume requires node affinity"],
                 id="inline local volume without node affinity"),
    pytest.param("flowcontrol.apiserver.k8s.io", "FlowSchema", {"spec": SCHEMA},
                 [("spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have "
                  "matchingPrecedence 1"),
                  ('spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "/x*": wildcard can only do '
                  "suffix matching")], id="reserved precedence and invalid wildcard of a FlowSchema"),
    pytest.param("admissionregistration.k8s.io", "ValidatingWebhookConfiguration",
                 {"webhooks": [HOOK, {**HOOK, "clientConfig": {"url": "http://u@example.com?q"}}]},
                 [('webhooks[1].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; '
                  "desired format: https://host[/path]"),
                  'webhooks[1].clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
                  'webhooks[1].clientConfig.url: Invalid value: "q": query parameters are not permitted in the URL',
                  'webhooks[1].name: Duplicate value: "a.example.com"'], id="invalid URL and duplicate name of a webhook"),
    pytest.param("resource.k8s.io", "ResourceSlice", {"spec": {**SLICE, "devices": DEVICES}},
                 [f'spec: Invalid value: "{{`nodeName`, `allNodes`}}": {ONE_PLACE}, but multiple fields are set',
                  ('spec.devices[0].attributes[v].version: Invalid value: "1": must be a string compatible with '
                  "semver.org spec 2.0.0"),
                  'spec.devices[0].capacity: Invalid value: "": the domain must not be empty',
                  'spec.devices[0].capacity: Invalid value: "": the name must not be empty'], id="both nodeName and allNodes of a ResourceSlice"),
    pytest.param("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["fd00:0::/64"]}},
                 ['spec.cidrs[0]: Invalid value: "fd00:0::/64": must be in canonical form ("fd00::/64")'],
                 id="non-canonical network"),
    pytest.param("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24", "10.1.0.0/33"]}},
                 ['spec.cidrs[1]: Invalid value: "10.1.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'],
                 id="an invalid network has no family"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "kind", "tree", "expected"), CREATIONS)
def test_invalid_create_is_refused(group, kind, tree, expected):
    assert create_errors(group, kind, tree) == expected


def test_ip_address_name_must_be_canonical():
    parent = {"spec": {"parentRef": {"resource": "services", "name": "s"}}}
    assert create_errors("networking.k8s.io", "IPAddress", parent, "10.0.0.1") == []
    empty = ["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"]
    assert create_errors("networking.k8s.io", "IPAddress", {"spec": {"parentRef": {}}}, "10.0.0.1") == empty
    absent = ["spec.parentRef: Required value"]
    assert create_errors("networking.k8s.io", "IPAddress", {"spec": {}}, "10.0.0.1") == absent
    assert create_errors("networking.k8s.io", "IPAddress", parent, "fd00:0::1") == [
        'metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")'
    ]


OBJECT = {"type": "object"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
LIST = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": NAMED,
}
AT = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({**OBJECT, "properties": {"a": {}}},
                     [f"{AT}.properties[a].type: Required value: must not be empty for specified object fields"],
                     id="field without type"),
        pytest.param({**OBJECT, "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}],
                                                     "x-kubernetes-int-or-string": True}}}, [], id="int-or-string"),
        pytest.param({**OBJECT, "anyOf": [{"properties": {"a": {"type": "string"}}}]},
                     [f"{AT}.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
                      f"{AT}.properties[a]: Required value: because it is defined in {AT}.anyOf[0].properties[a]"],
                     id="field specified only in anyOf"),
        pytest.param({**OBJECT, "properties": {"metadata": {"type": "object", "required": ["labels"]}}},
                     [(f"{AT}.properties[metadata]: Forbidden: must not specify anything other than name and "
                      "generateName, but metadata is implicitly specified")], id="metadata is restricted"),
        pytest.param({**OBJECT, "properties": {"l": LIST}},
                     [(f"{AT}.properties[l].items.properties[name].default: Required value: this property is in "
                      "x-kubernetes-list-map-keys, so it must have a default or be a required property")],
                     id="list map key is not required"),
        pytest.param({**OBJECT, "uniqueItems": True},
                     [(f"{AT}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
                      "becomes quadratic")], id="items are unique"),
    ],
)  # fmt: skip
def test_definition_schemas_are_validated(schema, expected):
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
    }
    tree = {"spec": spec, "status": {"storedVersions": ["v1"]}}
    assert (
        create_errors("apiextensions.k8s.io", "CustomResourceDefinition", tree, "as.example.com") == expected
    )


@pytest.mark.parametrize(
    ("kind", "field"), [("ApplyConfiguration", "applyConfiguration"), ("JSONPatch", "jsonPatch")]
)
def test_mutation_needs_expression(kind, field):
    matched = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    mutation = {"patchType": kind, field: {"expression": " "}}
    spec = {"matchConstraints": {"resourceRules": [matched]}, "mutations": [mutation]}
    errors = create_errors("admissionregistration.k8s.io", "MutatingAdmissionPolicy", {"spec": spec})
    assert f"spec.mutations[0].{field}.expression: Required value" in errors
