"""Containers as local processes: environment, files, probes, restarts and termination."""

import base64

import pytest
from kubernetes import client as official
from kubernetes import watch
from kubernetes.stream import stream

from mockube import Cluster
from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.component_base.clock import RealClock
from mockube.embedded.handle import NotStarted
from tests.support.pod_network import missing
from tests.support.process_pods import IMAGES, create, events, is_over, processes_of, python, status_of
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: hidden}
"""
SHOW = """
import os
root = os.environ["MOCKUBE_ROOT"]
for path in ("/etc/settings/color", "/etc/password/word", "/etc/about/name"):
    print(open(root + path).read())
account = root + "/var/run/secrets/kubernetes.io/serviceaccount/"
print(sorted(one for one in os.listdir(account) if not one.startswith(".")))
print(os.environ["COLOR"], os.environ["WORD"], os.environ["NODE"], os.environ["LIMIT"], os.environ["HOSTNAME"])
print(os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
open(root + "/dev/termination-log", "w").write("left behind")
open(root + "/scratch/file", "w").write("x")
raise SystemExit(3)
"""
VOLUMES = [
    {"name": "settings", "configMap": {"name": "settings"}},
    {"name": "password", "secret": {"secretName": "password"}},
    {
        "name": "about",
        "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]},
    },
    {"name": "scratch", "emptyDir": {}},
]


def test_process_has_environment_and_files_of_pod(cluster, pods):
    cluster.apply(OBJECTS)
    mounts = ("settings", "password", "about")
    container = python(
        SHOW,
        env=[
            {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        envFrom=[{"prefix": "", "secretRef": {"name": "words"}}],
        resources={"limits": {"cpu": "2"}},
        volumeMounts=[
            *({"name": one, "mountPath": f"/etc/{one}"} for one in mounts),
            {"name": "scratch", "mountPath": "/scratch"},
        ],
    )
    name = create(
        pods,
        container,
        policy="Never",
        volumes=VOLUMES,
    )
    waits = cluster.wait("Pod", name, lambda pod: "waiting" in status_of(pod).get("state", {}))
    assert not is_over(waits)
    pods.create_namespaced_secret("default", {"metadata": {"name": "words"}, "stringData": {"WORD": "open"}})
    cluster.advance(3)
    pod = cluster.wait("Pod", name, is_over)
    # With a network of its own a pod reaches the API server by its Service.
    host, port = cluster.url.removeprefix("https://").split(":") if missing() else ("10.0.0.1", "443")
    assert pods.read_namespaced_pod_log(name, "default").splitlines() == [
        "blue",
        "hidden",
        name,
        "['ca.crt', 'namespace', 'token']",
        f"blue open node-1 2 {name}",
        f"{host} {port}",
    ]
    end = status_of(pod)["state"]["terminated"]
    assert (end["exitCode"], end["reason"], end["message"]) == (3, "Error", "left behind")
    assert pod["status"]["phase"] == "Failed"


def test_process_reaches_apiserver_as_service_account(cluster, pods):
    script = """
import json, os, ssl, urllib.request
account = os.environ["MOCKUBE_ROOT"] + "/var/run/secrets/kubernetes.io/serviceaccount/"
tls = ssl.create_default_context(cafile=account + "ca.crt")
host = "https://" + os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
token = open(account + "token").read()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
answer = json.load(urllib.request.urlopen(urllib.request.Request(host + path, body, headers), context=tls))
print(answer["status"]["userInfo"]["username"])
print(os.path.samefile(os.environ["KUBECONFIG"], os.environ["MOCKUBE_ROOT"] + "/kubeconfig"))
"""
    name = create(pods, python(script), policy="Never")
    cluster.wait("Pod", name, is_over)
    assert pods.read_namespaced_pod_log(name, "default") == "system:serviceaccount:default:default\nTrue\n"


def test_process_restarts_with_back_off_and_keeps_previous_log(cluster, pods):
    script = """
import os
left = [place + "/left" for place in (os.environ["TMPDIR"], os.environ["MOCKUBE_ROOT"] + "/scratch")]
print("found", [os.path.exists(path) for path in left])
for path in left:
    open(path, "w").close()
raise SystemExit(4)
"""
    mounted = {"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}
    name = create(pods, {**python(script), **mounted}, volumes=[{"name": "scratch", "emptyDir": {}}])

    def crashes(pod):
        return status_of(pod).get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff"

    pod = cluster.wait("Pod", name, crashes)
    assert status_of(pod)["restartCount"] == 1
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 4
    cluster.advance(11)
    pod = cluster.wait("Pod", name, lambda pod: status_of(pod).get("restartCount") == 2 and crashes(pod))
    assert status_of(pod)["state"]["waiting"]["message"].startswith("back-off 20s restarting failed")
    assert pods.read_namespaced_pod_log(name, "default", previous=True) == "found [False, True]\n"
    until(lambda: any(reason == "BackOff" for reason, _ in events(cluster, name)), "the event")


def test_probes_control_readiness_and_restarts_of_process(cluster, pods):
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    name = create(
        pods,
        {
            "name": "c",
            "image": "example.org/server",
            "startupProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
            "readinessProbe": {**probe, "httpGet": {"port": 8080, "path": "/unready"}},
            "livenessProbe": {**probe, "httpGet": {"port": 8080, "path": "/dead"}},
        },
    )

    def touch(path):
        script = f"echo > $MOCKUBE_ROOT/tmp/{path}"
        stream(
            pods.connect_get_namespaced_pod_exec, name, "default", command=["sh", "-c", script], stdout=True
        )

    cluster.wait("Pod", name, "Ready")
    touch("unready")
    cluster.advance(1)
    cluster.wait("Pod", name, lambda pod: not status_of(pod)["ready"])
    touch("dead")
    cluster.advance(1)
    pod = cluster.wait("Pod", name, lambda pod: status_of(pod).get("restartCount") == 1)
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 0
    reasons_and_messages = events(cluster, name)
    assert (
        "Unhealthy",
        "Readiness probe failed: HTTP probe failed with statuscode: 500",
    ) in reasons_and_messages
    assert (
        "Unhealthy",
        "Liveness probe failed: HTTP probe failed with statuscode: 500",
    ) in reasons_and_messages
    assert ("Killing", "Container c failed liveness probe, will be restarted") in reasons_and_messages
    counted = pods.connect_get_node_proxy_with_path(pod["spec"]["nodeName"], path="metrics/probes")
    of = f'container="c",namespace="default",pod="{name}"'
    assert f'prober_probe_duration_seconds_count{{{of},probe_type="Readiness"}}' in counted
    assert f'{of},pod_uid="{pod["metadata"]["uid"]}",probe_type="Liveness",result="failed"}} 1\n' in counted


def test_hooks_run_and_stop_has_grace_period(cluster, pods, machine_folder):
    def note(word):
        return {"exec": {"command": ["sh", "-c", f"echo {word} >> {machine_folder}/notes"]}}

    script = f"""
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("up")
signal.sigwait([signal.SIGTERM])
open("{machine_folder}/notes", "a").write("stopped\\n")
sys.exit(7)
"""
    name = create(pods, python(script, lifecycle={"postStart": note("begun"), "preStop": note("ending")}))
    cluster.wait("Pod", name, "Ready")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")
    assert next(lines) == "up"
    pods.delete_namespaced_pod(name, "default")
    cluster.wait_gone("Pod", name)
    assert (machine_folder / "notes").read_text() == "begun\nending\nstopped\n"
    assert list(lines) == []


def test_process_group_is_killed_after_grace_period(cluster, pods):
    script = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    print("up")
time.sleep(1000)
"""
    name = create(pods, python(script))
    cluster.wait("Pod", name, "Ready")
    assert next(watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")) == "up"
    uid = pods.read_namespaced_pod(name, "default").metadata.uid
    processes = processes_of(uid)
    assert len(processes) == 2
    pods.delete_namespaced_pod(name, "default")
    cluster.wait("Pod", name, lambda pod: pod["metadata"].get("deletionTimestamp"))
    cluster.advance(6)
    cluster.wait_gone("Pod", name)
    assert not processes & processes_of(uid)


def test_init_containers_and_sidecars_of_processes_keep_order(cluster, pods):
    def step(name, script, **fields):
        return {**python(script), "name": name, **fields, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}

    write = "import os; f = open(os.environ['MOCKUBE_ROOT'] + '/v/order', 'a'); f.write({!r}); f.close()"
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); "
    wait = "; signal.sigwait([signal.SIGTERM])"
    read = "import os; print(open(os.environ['MOCKUBE_ROOT'] + '/v/order').read())"
    started = {"exec": {"command": ["sh", "-c", "grep -q side $MOCKUBE_ROOT/v/order"]}, "periodSeconds": 1}
    name = create(
        pods,
        step("main", read),
        policy="Never",
        initContainers=[
            step("first", write.format("init ")),
            step("side", block + write.format("side ") + wait, restartPolicy="Always", startupProbe=started),
        ],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    pod = cluster.wait("Pod", name, is_over)
    assert pod["status"]["phase"] == "Succeeded"
    assert pods.read_namespaced_pod_log(name, "default", container="main") == "init side \n"
    ends = [one["state"]["terminated"]["exitCode"] for one in pod["status"]["initContainerStatuses"]]
    assert ends == [0, 0]


def test_process_that_cannot_be_started_reports_reason(cluster, pods):
    name = create(pods, {"name": "c", "image": "example.org/missing"}, policy="Never")
    pod = cluster.wait("Pod", name, is_over)
    end = status_of(pod)["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (128, "StartError")
    assert 'exec: "no-such-program": executable file not found in $PATH' in end["message"]


def test_host_path_of_the_kernel_is_refused_by_name(cluster, pods):
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    name = create(
        pods, python("pass", **mount), volumes=[{"name": "v", "hostPath": {"path": "/proc/sys/net"}}]
    )
    pod = cluster.wait(
        "Pod", name, lambda pod: "message" in status_of(pod).get("state", {}).get("waiting", {})
    )
    assert status_of(pod)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": "volume 'v': the path /proc/sys/net of a node is not supported for a container that runs as a local process",
    }


def test_unmapped_images_stay_simulated(cluster, pods):
    name = create(
        pods, python("import time; time.sleep(1000)"), {"name": "other", "image": "example.org/other"}
    )
    cluster.wait("Pod", name, "Ready")
    log = pods.read_namespaced_pod_log(name, "default", container="other")
    assert log == "mockube: container other is simulated: the image example.org/other does not run\n"


def execute(pods, name, container, script):
    command = ["sh", "-c", script]
    return stream(
        pods.connect_get_namespaced_pod_exec,
        name,
        "default",
        container=container,
        command=command,
        stdout=True,
        stderr=True,
    )


READ_AND_WRITE = """
import os, time
folder = os.environ["MOCKUBE_ROOT"] + "/v/"
print(open(folder + "settings/from-init").read(), end="", flush=True)
while not os.path.exists(folder + "from-simulated"):
    time.sleep(0.05)
print(open(folder + "from-simulated").read(), end="", flush=True)
open(folder + "from-process", "w").write("of the process\\n")
os.symlink("/etc/passwd", folder + "link")
time.sleep(1000)
"""


def test_process_shares_a_volume_with_simulated_containers(cluster, pods):
    def simulated(name, script):
        mount = [{"name": "v", "mountPath": "/data"}]
        return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mount}

    waits = "until [ -f /data/from-process ]; do sleep 1; done; cat /data/from-process; sleep 1000"
    name = create(
        pods,
        python(READ_AND_WRITE, volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        simulated("writer", "echo simulated > /data/tmp; mv /data/tmp /data/from-simulated; sleep 1000"),
        simulated("reader", waits),
        initContainers=[simulated("init", "mkdir /data/settings; echo init > /data/settings/from-init")],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    cluster.wait("Pod", name, "Ready")

    def log_has(container, text):
        return lambda: pods.read_namespaced_pod_log(name, "default", container=container) == text

    until(log_has("c", "init\nsimulated\n"), "the files of simulated containers")
    cluster.advance(2)
    until(log_has("reader", "of the process\n"), "the file of the process")
    assert execute(pods, name, "writer", "cat /data/from-process") == "of the process\n"
    # The link of a process leads to a file of the simulated container, not of this machine.
    assert execute(pods, name, "writer", "cat /data/link") == execute(pods, name, "writer", "cat /etc/passwd")
    execute(pods, name, "writer", "echo later > /data/later; rm -r /data/settings")
    assert execute(pods, name, "c", "cat $MOCKUBE_ROOT/v/later; ls $MOCKUBE_ROOT/v") == (
        "later\nfrom-process\nfrom-simulated\nlater\nlink\n"
    )
    assert not [message for reason, message in events(cluster, name) if reason == "NotSimulated"]


def test_files_of_a_node_are_shared_by_processes_and_simulated_pods(cluster, pods):
    mounted = {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "part"}]}
    volumes = [{"name": "v", "hostPath": {"path": "/srv/shared", "type": "DirectoryOrCreate"}}]
    wait = {"name": "c", "image": "busybox", "command": ["sleep", "1000"], **mounted}
    first = create(pods, wait, volumes=volumes)
    cluster.wait("Pod", first, "Ready")
    execute(pods, first, "c", "echo before > /v/before")
    script = "import os; root = os.environ['MOCKUBE_ROOT']; print(open(root + '/v/before').read()); open(root + '/v/after', 'w').write('after')"
    second = create(pods, python(script, **mounted), policy="Never", volumes=volumes)
    assert cluster.wait("Pod", second, is_over)["status"]["phase"] == "Succeeded"
    assert execute(pods, first, "c", "cat /v/after") == "after"
    pods.delete_namespaced_pod(second, "default")
    cluster.wait_gone("Pod", second)
    third = create(pods, wait, volumes=volumes)
    cluster.wait("Pod", third, "Ready")
    assert execute(pods, third, "c", "cat /v/before /v/after") == "before\nafter"


API_SERVER = """
import http.server, json, os, signal, ssl, sys
THINGS = {"name": "things", "singularName": "thing", "namespaced": False, "kind": "Thing", "verbs": ["get", "list", "create"]}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, list_ = self.path.partition("?")[0], {"apiVersion": "v1", "kind": "APIResourceList"}
        if path == "/apis/process.example.com/v1":
            self.answer({**list_, "groupVersion": "process.example.com/v1", "resources": [THINGS]})
        elif path == "/apis/process.example.com/v1/things":
            self.answer({"user": self.headers["X-Remote-User"], "uri": self.path})
        else:
            self.answer({}, 404)
    def do_POST(self):
        self.answer({"sent": self.rfile.read(int(self.headers["Content-Length"])).decode()}, 201)
    def answer(self, tree, code=200):
        body = json.dumps(tree).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["MOCKUBE_ROOT"] + "/pair/pair.pem")
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["MOCKUBE_PORT_8443"])), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_aggregated_apiserver_may_be_a_process(cluster, pods):
    authority = make_authority("authority", now=RealClock().now(), random=SystemRandom())
    issuer = CertificateIssuer(authority, now=RealClock().now(), random=SystemRandom())
    pair = issuer.issue(Subject(name="api", hosts=("api.default.svc",)))
    pem = (pair.certificate + pair.key).decode()
    pods.create_namespaced_secret("default", {"metadata": {"name": "pair"}, "stringData": {"pair.pem": pem}})
    container = {
        "name": "c",
        "image": "example.org/api",
        "args": [API_SERVER],
        "ports": [{"containerPort": 8443}],
        "volumeMounts": [{"name": "pair", "mountPath": "/pair"}],
    }
    volumes = [{"name": "pair", "secret": {"secretName": "pair"}}]
    name = create(pods, container, volumes=volumes)
    pods.patch_namespaced_pod(name, "default", {"metadata": {"labels": {"app": "api"}}})
    spec = {"selector": {"app": "api"}, "ports": [{"port": 443, "targetPort": 8443}]}
    pods.create_namespaced_service("default", {"metadata": {"name": "api"}, "spec": spec})
    spec = {
        "group": "process.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"namespace": "default", "name": "api"},
        "caBundle": base64.b64encode(authority.certificate).decode(),
    }
    client = cluster.kubernetes()
    service = {"metadata": {"name": "v1.process.example.com"}, "spec": spec}
    official.ApiregistrationV1Api(client).create_api_service(service)
    cluster.wait("APIService", "v1.process.example.com", "Available")
    things = official.CustomObjectsApi(client)
    of_kind = "process.example.com", "v1", "things"
    answer = things.list_cluster_custom_object(*of_kind, limit=3)
    assert (answer["uri"], bool(answer["user"])) == ("/apis/process.example.com/v1/things?limit=3", True)
    assert things.create_cluster_custom_object(*of_kind, {"a": 1}) == {"sent": '{"a": 1}'}
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    with pytest.raises(official.ApiException, match="invalid upgrade response: status code 200"):
        things.list_cluster_custom_object(*of_kind, _headers=upgrade)


def test_processes_end_with_their_cluster():
    script = "import time; print('up'); time.sleep(1000)"
    with Cluster(nodes=1, images=IMAGES) as cluster:
        pods = official.CoreV1Api(cluster.kubernetes())
        name = create(pods, python(script))
        cluster.wait("Pod", name, "Ready")
        assert next(watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")) == "up"
        uid = pods.read_namespaced_pod(name, "default").metadata.uid
        assert processes_of(uid)
    assert not processes_of(uid)


def test_invalid_image_map_is_refused():
    with pytest.raises(NotStarted, match="app: unknown comand; known are args, command"):
        Cluster(images={"app": {"comand": ["x"]}}).start()
