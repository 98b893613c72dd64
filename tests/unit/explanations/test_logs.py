"""What is said of a program that failed, by what it printed."""

import pytest

from mockube.explanations.catalog import explain
from tests.support.explained import condition, facts_of, node_of, pod_of, resource_of, thing
from tests.support.told import evidence_of, told

FAILED = "Explained: the container c ended with exit code 1: its own program failed; it printed: "
PRINTED, OF_CONTAINER = "- kubectl -n default logs web -c c", "@ pod/web spec.containers[c]"
READY = {"phase": "Running", "conditions": [condition("Ready", "True")], "podIP": "10.0.0.2"}


def failed(container=(), **spec):
    ended = {"exitCode": 1, "reason": "Error"}
    status = {"name": "c", "ready": False, "restartCount": 0, "state": {"terminated": ended}}
    fields = {
        "containerStatuses": [status],
        "conditions": [condition("Initialized", "True")],
        "podIP": "10.0.0.1",
    }
    return pod_of(status=fields, container=dict(container), metadata={"labels": {"app": "web"}}, **spec)


def said(pod, log, *objects, **options):
    facts = facts_of(pod, node_of(), *objects, logs={"c": log}, **options)
    return explain(resource_of(pod), pod, facts)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("starting\nERROR: no password is given\nbye\n\n", "ERROR: no password is given"),
        ("one\ntwo\n", "two"),
        ("2026/12/01 02:37:46 [emerg] 1#1: no conf", "[emerg] 1#1: no conf"),
        ("panic: boom\n  goroutine 1", "panic: boom"),
        (f"error {'x' * 500}", f"error {'x' * 294}"),
    ],
)
def test_newest_line_about_a_problem_is_quoted(log, line):
    assert told(said(failed(), log)) == [f"{FAILED}{line}", PRINTED, OF_CONTAINER]


# --- rights

REFUSED = 'pods is forbidden: User "system:serviceaccount:default:bot" cannot list resource "pods" in API group "" in the namespace "default"'


def test_right_that_the_program_lacks_is_named_and_granted():
    found = said(failed(), REFUSED)
    lines = told(found)
    assert lines[0].endswith(
        "; no rule lets system:serviceaccount:default:bot list pods in the namespace default"
    )
    assert lines[1:3] == [
        "- kubectl -n default create role list-pods --verb=list --resource=pods",
        "- kubectl -n default create rolebinding list-pods --role=list-pods --serviceaccount=default:bot",
    ]
    assert "no binding names system:serviceaccount:default:bot" in evidence_of(found)


def test_right_that_was_granted_since_then_is_not_granted_again():
    assert told(said(failed(), REFUSED, allowed=True)) == [
        f"{FAILED}{REFUSED}; no rule let system:serviceaccount:default:bot list pods in the namespace default then; a rule does now",
        PRINTED,
        OF_CONTAINER,
    ]


def test_right_on_a_subresource_of_the_whole_cluster():
    line = 'User "system:serviceaccount:x:y" cannot update resource "nodes/status" in API group "" at the cluster scope'
    assert told(said(failed(), line))[1] == (
        "- kubectl create clusterrole update-nodes --verb=update --resource=nodes/status"
    )


# --- the network

UNKNOWN_HOSTS = [
    "nc: bad address '{}'",
    "dial tcp: lookup {} on 10.96.0.10:53: no such host",
    "curl: (6) Could not resolve host: {}",
    "Error: getaddrinfo ENOTFOUND {}",
    'psql: error: could not translate host name "{}" to address: Name or service not known',
    "Could not connect to Redis at {}:6379: Name or service not known",
    "** server can't find {}: NXDOMAIN",
    "java.net.UnknownHostException: {}",
    'nginx: [emerg] host not found in upstream "{}" in /etc/nginx/conf.d/default.conf:3',
    "ERROR 2005 (HY000): Unknown MySQL server host '{}' (-2)",
]


@pytest.mark.parametrize("line", UNKNOWN_HOSTS)
@pytest.mark.parametrize("host", ["mysql", "mysql.default", "mysql.default.svc.cluster.local"])
def test_service_that_does_not_exist_is_named_with_the_one_that_is_meant(line, host):
    default = thing("Namespace", "default", namespace="")
    found = told(said(failed(), line.format(host), default, thing("Service", "mysql-svc", spec={})))
    assert found[0].endswith("; there is no Service mysql in the namespace default, but mysql-svc")
    assert found[1] == "- Ask for mysql-svc, or create the Service mysql in default."
    assert found[-2] == "@ service/mysql"


@pytest.mark.parametrize("host", ["mysql", "mysql.com", "mysql.example.com"])
def test_name_of_a_service_that_exists_and_of_another_domain_say_nothing_more(host):
    line = f"nc: bad address '{host}'"
    found = told(said(failed(), line, thing("Service", "mysql", spec={})))
    assert found == [FAILED + line, PRINTED, OF_CONTAINER]


def policy(name, direction, **spec):
    fields = {"podSelector": {}, "policyTypes": [direction], **spec}
    return thing("NetworkPolicy", name, api_version="networking.k8s.io/v1", spec=fields)


def test_policy_that_refuses_dns_is_named():
    egress = [{"to": [{"podSelector": {}}], "ports": [{"port": 6379}]}]
    found = said(failed(), "nc: bad address 'db'", policy("out", "Egress", egress=egress))
    assert told(found)[0].endswith(
        "; the pod asks for addresses at port 53 of the DNS, which no rule of the NetworkPolicy out allows"
    )
    assert told(found)[1] == "- kubectl -n default edit networkpolicy out"


DB = thing("Service", "db", spec={"selector": {"app": "db"}, "ports": [{"port": 80, "targetPort": "sql"}]})
PORTS = {"ports": [{"name": "sql", "containerPort": 5432}]}


def database(status=READY):
    return pod_of("db-0", status=status, container=PORTS, metadata={"labels": {"app": "db"}})


@pytest.mark.parametrize(
    ("ingress", "is_named"),
    [
        ([], True),
        ([{"ports": [{"port": 80}]}], True),
        ([{"ports": [{"port": 5432}]}], False),
        ([{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}], False),
        ([{"from": [{"podSelector": {"matchLabels": {"app": "other"}}}]}], True),
    ],
)
@pytest.mark.parametrize("line", ["wget: download timed out", "dial tcp 10.1.2.3:80: i/o timeout"])
def test_policy_that_refuses_a_connection_to_a_named_service_is_named(line, ingress, is_named):
    pod = failed({"command": ["sh", "-c", "wget http://db"]})
    found = told(said(pod, line, DB, database(), policy("in", "Ingress", ingress=ingress)))
    cause = (
        "; it connects to the Service db, which no rule of the NetworkPolicy in allows" if is_named else ""
    )
    assert found[0] == f"{FAILED}{line}{cause}"
    assert ("@ networkpolicy/in spec" in found) is is_named


def test_service_without_a_ready_pod_is_named():
    pod = failed({"env": [{"name": "URL", "value": "http://db:80"}]})
    found = told(said(pod, "connect: connection refused", DB, database({"phase": "Pending"})))
    assert found[0].endswith("; it connects to the Service db, which has no ready pod")
    assert found[1] == "- mockube why service/db -n default"


# --- the security context


@pytest.mark.parametrize(
    ("problem", "context", "text"),
    [
        ("Permission denied", {"runAsUser": 65534}, "runAsUser 65534"),
        ("Read-only file system", {"readOnlyRootFilesystem": True}, "readOnlyRootFilesystem true"),
        ("Operation not permitted", {"capabilities": {"drop": ["ALL"]}}, "capabilities drop ALL"),
    ],
)
def test_field_of_the_security_context_that_refuses_is_named(problem, context, text):
    line = f'nginx: [emerg] mkdir() "/var/cache/nginx/client_temp" failed (13: {problem})'
    found = said(failed({"securityContext": context}), line)
    assert found.cause.endswith(f"{line}; its securityContext has {text}")
    assert told(found)[-2] == f"{OF_CONTAINER}.securityContext.{text.partition(' ')[0]}"
    assert not any(each.command and "patch" in each.command for each in found.remedies)  # of a bare pod
    assert told(said(failed(), line)) == [FAILED + line, PRINTED, OF_CONTAINER]


def test_user_of_the_pod_is_named():
    pod = failed(securityContext={"runAsUser": 7})
    assert "@ pod/web spec.securityContext.runAsUser" in told(said(pod, 'open "/a/b": Permission denied'))


# --- ports


def test_container_that_has_the_port_is_named():
    two = [{"name": "c", "image": "nginx"}, {"name": "one", "image": "nginx"}]
    line = "bind() to 0.0.0.0:80 failed (98: Address already in use)"
    assert (
        f"{line}; the containers of a pod share its ports: one has it"
        in said(failed(containers=two), line).cause
    )
    assert told(said(failed(), line))[0] == FAILED + line


def test_port_at_which_no_program_listened_is_named():
    pod = failed({"args": ["curl http://db"]})
    found = told(said(pod, "curl: (7) Failed to connect to db port 80", DB, database()))
    assert found[0].endswith(
        "; it connects to the Service db, which leads to the port 5432 of db-0: no program listened there"
    )
    assert "@ service/db spec.ports" in found
    line = "db:80: Name or service not known: could not connect"  # it has no address
    assert told(said(pod, line, DB, database()))[0] == FAILED + line
