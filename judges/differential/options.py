"""Options, selectors, formats and bodies of requests: usual ones and odd ones."""

# fmt: off
METHODS = (
    "GET", "GET", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS",
)
OPTIONS = (
    "", "", "", "dryRun=All", "dryRun=All&dryRun=All", "dryRun=All&dryRun=x",
    "fieldManager=a&fieldManager=b", "fieldValidation=strict", "fieldValidation=", "force=true", "force=x",
    "fieldManager=" + "x" * 130,
    "pretty=0", "pretty=x", "timeout=1s", "timeout=x", "timeout=0", "unknown=1", "gracePeriodSeconds=1",
    "resourceVersion=x", "propagationPolicy=Foreground&orphanDependents=true", "orphanDependents=x",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true", "fieldManager=%20", "fieldManager=%C3%A4",
)
SELECTORS = (
    "a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b)", "a in ()", "a in (b", "a>1", "a<x",
    "a>=", "a=b,", ",", "a=b,c", "a = b , c!=d", "A_b/c=d", "-a=b", "a=-",
    "a=" + "x" * 64, "a\n=b", "(a)", "in", "a=b=c",
    "example.com/a", "a/b/c", "a in (b,)", "a,a", "!a,a=b", "notin in (in)", "a=ä",
)
FIELDS = (
    "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
    "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
    "status.nominatedNodeName", "type", "reason", "reportingComponent", "source", "involvedObject.kind",
    "involvedObject.name", "regarding.name", "regarding.kind", "reportingController", "spec.unschedulable",
    "status.successful", "status.replicas", "spec.clusterIP", "spec.type", "name", "spec.signerName", "x",
    "metadata.uid", "metadata.labels", "spec.driver", "spec.nodeName.x", "spec.podCIDR",
    "metadata.generation",
)
VALUES = (
    "", "x", "true", "false", "0", "1", "${ns}", "Pending", "Always", "a,b", "a\\,b", "a\\=b", "\\",
    "None",
)
LISTED = (
    "", "", "limit=1", "limit=2", "limit=1&resourceVersion=0", "limit=1&continue=", "continue=x&limit=1",
    "resourceVersion=0&resourceVersionMatch=", "resourceVersionMatch=NotOlderThan", "resourceVersion=-1",
    "resourceVersion=1&resourceVersionMatch=x", "resourceVersion=00",
    "resourceVersion=99999999999999999999", "continue=x&resourceVersion=1",
    "continue=x&resourceVersionMatch=Exact", "limit=9223372036854775808", "timeoutSeconds=-1",
    "timeoutSeconds=1.5", "sendInitialEvents=x", "watch=x&timeoutSeconds=1", "watch=0",
    "watch=&timeoutSeconds=1", "sendInitialEvents=false", "allowWatchBookmarks=true", "shardSelector=x",
    "watch=false&allowWatchBookmarks=1", "limit=1&limit=2", "labelSelector=a&labelSelector=b",
    "fieldSelector=&labelSelector=", "includeObject=x",
)
WATCHED = (
    "resourceVersion=x&timeoutSeconds=1", "resourceVersionMatch=Exact&resourceVersion=1&timeoutSeconds=1",
    "resourceVersionMatch=NotOlderThan&timeoutSeconds=1", "sendInitialEvents=true&timeoutSeconds=1",
    "sendInitialEvents=false&timeoutSeconds=1",
    "sendInitialEvents=true&resourceVersionMatch=Exact&timeoutSeconds=1",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1",
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
    "allowWatchBookmarks=x&timeoutSeconds=1", "continue=x&timeoutSeconds=1", "limit=1&timeoutSeconds=1",
    "timeoutSeconds=x", "fieldSelector=x%3D1&timeoutSeconds=1", "labelSelector=a%3D%3D&timeoutSeconds=1",
    "resourceVersion=0&timeoutSeconds=1", "timeoutSeconds=1", "resourceVersion=1&timeoutSeconds=1",
)
LANGUAGES = (
    "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/yaml",
    "application/cbor", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=x", "text/plain, */*", "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "*/*;q=0.1, application/yaml", "application/json;q=x", "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
)
DELETED = (
    None, None, None, {"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"},
    {"dryRun": ["All"]}, {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": -5}, {"preconditions": {}},
    {"orphanDependents": False}, {"propagationPolicy": "", "orphanDependents": None},
    {"preconditions": {"resourceVersion": "x"}}, [], "x", {"apiVersion": "v1", "kind": "Status"},
    {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"},
    {"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 1},
    {"gracePeriodSeconds": "1"},
)
OWNERS = (
    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True},
    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "p", "uid": "u2", "controller": True},
    {"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u3"},
    {"apiVersion": "", "kind": "", "name": "", "uid": ""},
    {"apiVersion": "a/b/c", "kind": "X", "name": "p", "uid": "u4", "blockOwnerDeletion": True},
    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": False},
    {"apiVersion": "v1", "kind": "Namespace", "name": "${ns}", "uid": "u5", "blockOwnerDeletion": None},
)
NAMES = (
    "g-", "G", "a.b-", "x" * 60,
    "x" * 250,
    "-", "a_", "1", "${ns}-", "",
)
CONNECTED = {
    "log": (
        "container=x", "follow=x", "tailLines=-1", "tailLines=x", "sinceSeconds=0", "limitBytes=0",
        "sinceTime=x", "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", "previous=true", "stream=Stdout",
        "stream=x", "stream=Stdout&tailLines=1", "insecureSkipTLSVerifyBackend=maybe", "timestamps=",
    ),
    "exec": (
        "command=ls", "command=ls&container=x", "stdin=true", "tty=true&stderr=true", "command=",
    ),
    "attach": (
        "container=x", "stdin=x", "stdout=true&stderr=true&tty=true",
    ),
    "portforward": (
        "ports=80", "ports=x", "ports=0",
    ),
    "proxy": (
        "path=x", "", "a=b",
    ),
}
"""Options of the connect subresources."""
BODIES = {
    "scale": (
        {"spec": {"replicas": 2}}, {"spec": {"replicas": -1}}, {"spec": {}}, {"spec": {"replicas": "1"}},
        {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "x"}, "spec": {"replicas": 0}},
        {"kind": "Scale", "apiVersion": "extensions/v1beta1", "spec": {"replicas": 1}},
        {"metadata": {"name": "y", "resourceVersion": "1"}, "spec": {"replicas": 3}, "status": {"replicas": 5}},
    ),
    "eviction": (
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}},
        {"metadata": {"name": "y"}}, {"deleteOptions": {"dryRun": ["All"]}},
        {"deleteOptions": {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 0}},
        {"apiVersion": "policy/v1beta1", "kind": "Eviction", "deleteOptions": {"propagationPolicy": "x"}},
    ),
    "binding": (
        {"target": {"kind": "Node", "name": "n"}}, {"target": {"kind": "Pod", "name": "n"}}, {"target": {}},
        {"metadata": {"name": "x", "uid": "u"}, "target": {"name": "n"}},
        {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}, "target": {"name": "n"}},
    ),
    "token": (
        {"spec": {"audiences": ["a"], "expirationSeconds": 600}}, {"spec": {"expirationSeconds": 1}},
        {"spec": {"expirationSeconds": 8589934592}},
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}},
        {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}},
        {"spec": {"audiences": [""]}, "metadata": {"name": "y", "namespace": "other"}},
    ),
}
"""Bodies of subresources that have a kind of their own."""
# fmt: on
