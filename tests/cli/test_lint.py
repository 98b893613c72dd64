"""`mockube lint` reports what the API servers of several minors say of objects and charts."""

import io
import os
import socket
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import orjson
import pytest

from mockube.cli.main import main
from mockube.lint.inputs import InputReader
from mockube.lint.renderers import ChartOptions
from tests.support.processes import go_programs, helm_binary

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
    - port: 80
      protokol: TCP
  trafficDistribution: PreferClose
"""
GATE = "its feature gate ServiceTrafficDistribution is off before 1.31"
DEPRECATION = '"PreferClose" is deprecated; use "PreferSameZone"'
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  names: {kind: Website, plural: websites}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://localhost:1/"}}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {url: {type: string}}}}
    - name: v1beta1
      served: true
      storage: false
      deprecated: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
WRONG_TYPE = 'spec.url in body must be of type string: "integer"'
WEBSITES = """\
apiVersion: example.com/v1
kind: Website
metadata: {name: good}
spec: {url: "x"}
---
apiVersion: example.com/v1
kind: Website
metadata: {name: bad}
spec: {url: 1, utl: 2}
---
apiVersion: example.com/v1beta1
kind: Website
metadata: {name: old}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec:
  serviceAccountName: robot
  priorityClassName: high
  runtimeClassName: sandbox
  containers: [{name: c, image: nginx}]
"""
NEEDED_BY_POD = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: shop}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 5
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: sandbox
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: main, image: nginx, ports: [{name: http, containerPort: 8080}]}
"""
SELECTING = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: htpp}]
"""
RESTRICTED = """\
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {pod-security.kubernetes.io/enforce: restricted}
"""
HELM = """\
#!/bin/sh
case "$*" in
*--kube-version=1.36.*)
  echo "Error: chart requires kubeVersion: >=1.37.0" >&2
  echo "Use --debug flag to render out invalid YAML" >&2
  exit 1;;
esac
echo "---
# Source: web/templates/settings.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {arguments: '$*'}
unknown: 1"
"""


@pytest.fixture
def lint(capsys, tmp_path, monkeypatch):
    """Run the command in a folder with some files; return its exit code, the lines that it printed, and its errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        code = main(["lint", "--minors=1.37", *(f"{name}.yaml" for name in files), *arguments])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err.splitlines()

    return run


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that makes a program the only one on PATH with its name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")

    def make(name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return make


def test_each_minor_reports_what_it_does_with_field(lint):
    code, lines, errors = lint("--minors=1.29-1.31,1.37", service=SERVICE)
    assert (code, errors) == (1, [])
    assert lines == [
        "OBJECT        1.29-1.31, 1.37",
        "service/web   dropped",
        "",
        "service/web",
        '  service.yaml:7: dropped: unknown field "spec.ports[0].protokol" (did you mean "protocol"?)',
        '  service.yaml:8: dropped in 1.29: unknown field "spec.trafficDistribution" (new in 1.30)',
        f'  service.yaml:8: dropped in 1.30: field "spec.trafficDistribution" is not kept: {GATE}',
        f"  service.yaml:8: warned in 1.37: spec.trafficDistribution: {DEPRECATION}",
        "",
        "1 object against 1.29-1.31, 1.37: 1 dropped",
    ]


def test_accepted_objects_are_counted_only(lint):
    assert lint(settings=CONFIG_MAP) == (0, ["1 object against 1.37: 1 accepted"], [])


def test_custom_resources_are_checked_by_definitions_that_come_later(lint):
    code, lines, _ = lint(websites=WEBSITES, definition=DEFINITION)
    assert code == 1
    assert lines[4:] == [
        "website.example.com/bad",
        f'  websites.yaml:9: refused: spec.url: Invalid value: "integer": {WRONG_TYPE}',
        '  websites.yaml:9: dropped: unknown field "spec.utl" (did you mean "url"?)',
        "",
        "website.example.com/old",
        "  websites.yaml:11: warned: example.com/v1beta1 Website is deprecated; use example.com/v1 Website",
        "",
        "4 objects against 1.37: 1 refused, 1 warned, 2 accepted",
    ]


def test_version_that_definition_does_not_serve_is_unknown(lint):
    website = "apiVersion: example.com/v2\nkind: Website\nmetadata: {name: new}\n"
    _, lines, _ = lint("--ignore-unknown-kinds", website=website, definition=DEFINITION)
    assert lines[4] == (
        '  website.yaml:1: unknown: no matches for kind "Website" in version "example.com/v2":'
        " its CustomResourceDefinition in the files is refused or does not serve the version"
    )


def test_definitions_of_cluster_are_not_objects_of_report(lint, tmp_path):
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/websites.yaml").write_text(DEFINITION)
    assert (
        lint("--crds=crds", websites=WEBSITES)[1][-1]
        == "3 objects against 1.37: 1 refused, 1 warned, 1 accepted"
    )
    code, _, errors = lint("--crds=websites.yaml", websites=WEBSITES)
    assert (code, errors) == (2, ["mockube: no CustomResourceDefinition in websites.yaml"])


def test_kind_without_definition_is_refused_unless_ignored(lint):
    code, lines, _ = lint(websites=WEBSITES)
    assert (code, lines[-1]) == (1, "3 objects against 1.37: 3 unknown")
    code, lines, _ = lint("--ignore-unknown-kinds", websites=WEBSITES)
    assert (code, lines) == (0, ["3 objects against 1.37: 3 skipped"])


def test_pod_finds_what_same_files_create(lint):
    assert lint(pod=POD, needed=NEEDED_BY_POD)[1] == ["4 objects against 1.37: 4 accepted"]
    _, lines, _ = lint(pod=POD)
    assert lines[4] == (
        '  pod.yaml:1: refused: pods "p" is forbidden: error looking up service account shop/robot:'
        ' serviceaccount "robot" not found'
    )


def test_limits_of_same_files_apply_to_pods(lint):
    limits = (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: shop}\n"
        "spec: {limits: [{type: Container, max: {cpu: 1}}]}\n"
    )
    pod = POD.replace("image: nginx", "image: nginx, resources: {limits: {cpu: 2}}")
    _, lines, _ = lint(pod=pod, needed=NEEDED_BY_POD, limits=limits)
    assert lines[4].endswith("maximum cpu usage per Container is 1, but limit is 2")


def test_zeros_that_servers_leave_out_are_accepted(lint):
    pod = POD.replace("spec:\n", "spec:\n  hostNetwork: false\n")
    assert lint(pod=pod, needed=NEEDED_BY_POD)[1] == ["4 objects against 1.37: 4 accepted"]


def test_field_of_wrong_type_has_its_line(lint):
    _, lines, _ = lint(settings=CONFIG_MAP.replace("a: b", "a: 1"))
    assert lines[4].startswith('  settings.yaml:4: refused: ConfigMap in version "v1" cannot be handled as')


def test_labels_of_namespace_in_files_apply_to_pods(lint):
    _, lines, _ = lint(pod=POD, needed=NEEDED_BY_POD, namespace=RESTRICTED)
    assert lines[4].startswith(
        '  pod.yaml:1: refused: pods "p" is forbidden: violates PodSecurity "restricted:latest"'
    )


def test_second_object_of_same_name_is_checked_as_change(lint):
    text = f"{RESTRICTED}---\n{RESTRICTED}---\n{CONFIG_MAP}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: default}}"
    assert lint(objects=text)[1] == ["4 objects against 1.37: 4 accepted"]


def test_text_that_is_no_object_is_refused_with_its_line(lint):
    text = (
        "a: 1\n b: 2\n---\nkind: Pod\n---\n- 1\n---\napiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n  a: c"
    )
    _, lines, _ = lint(objects=text)
    assert [line for line in lines if line.startswith("  ")] == [
        "  objects.yaml:2: refused: error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context",
        "  objects.yaml:4: refused: apiVersion not set",
        "  objects.yaml:6: refused: not an object: it is a number",
        "  objects.yaml:8: refused: metadata.name: Required value: name or generateName is required",
        '  objects.yaml:12: dropped: key "a" already set in map: the last value counts',
    ]


def test_template_of_chart_is_recognized(lint):
    _, lines, _ = lint(deployment="metadata:\n  name: {{ .Values.name }}\n")
    assert lines[4].endswith("(if this is a template of a chart, name the chart's folder instead)")


def test_duplicate_field_of_json_is_found(lint, monkeypatch):
    text = (
        b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b", "a": "c"}}'
    )
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    code, lines, _ = lint("-")
    assert (code, lines[4]) == (1, '  stdin:1: dropped: duplicate field "data.a"')


def test_large_config_map_is_refused_as_by_server(lint):
    text = CONFIG_MAP.replace("a: b", f"a: {'x' * (1 + (1 << 20))}")
    assert "Too long: may not be more than 1048576 bytes" in lint(settings=text)[1][4]
    text = CONFIG_MAP.replace("a: b", f"a: {'x' * (4 << 20)}")
    assert "Request entity too large" in lint(settings=text)[1][4]


def test_folder_is_read_without_other_yaml(lint, tmp_path):
    for name, text in {
        "a/web.yml": CONFIG_MAP,
        "a/b/values.yaml": "replicas: 1",
        ".git/x.yaml": CONFIG_MAP,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "a/link").symlink_to(tmp_path, target_is_directory=True)
    assert lint(".") == (0, ["1 object against 1.37: 1 accepted"], [])
    code, _, errors = lint("a/b")
    assert (code, errors) == (2, ["mockube: no objects in a/b"])


def test_objects_printed_from_cluster_are_checked_as_applied(lint):
    service = """\
- apiVersion: v1
  kind: Service
  metadata: {name: web, uid: u1, resourceVersion: "7", creationTimestamp: "2030-01-01T00:00:00Z"}
  spec: {clusterIP: 172.20.0.7, clusterIPs: [172.20.0.7], ports: [{port: 80}], type: ClusterIP}
  status: {loadBalancer: {}, newer: 1}
"""
    created = """\
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: kube-root-ca.crt, namespace: shop, uid: u4}
"""
    pod = """\
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-abcde
    uid: u2
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u3, controller: true}]
  spec: {serviceAccountName: gone}
"""
    _, lines, _ = lint(dump=f"apiVersion: v1\nitems:\n{service}{created}{pod}kind: List\n")
    assert lines == ["1 object against 1.37: 1 accepted"]


def test_printed_object_that_was_applied_in_removed_version_is_found(lint):
    text = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  uid: u1
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {}}
spec:
  schedule: "@daily"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
"""
    _, lines, _ = lint(dump=text)
    assert lines[4] == (
        '  dump.yaml:1: removed: last applied as batch/v1beta1 CronJob: no matches for kind "CronJob"'
        ' in version "batch/v1beta1": removed in 1.25, use batch/v1'
    )


def test_json_has_outcome_of_each_minor(lint):
    text = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: report, namespace: shop}\n"
    code, lines, _ = lint("--minors=1.36-", "-o", "json", job=text)
    assert code == 1
    assert orjson.loads("\n".join(lines)) == {
        "minors": ["1.36", "1.37"],
        "failed": True,
        "counts": {"removed": 1},
        "objects": [
            {
                "file": "job.yaml",
                "line": 1,
                "apiVersion": "batch/v1beta1",
                "kind": "CronJob",
                "namespace": "shop",
                "name": "report",
                "outcome": "removed",
                "outcomes": {"1.36": "removed", "1.37": "removed"},
                "findings": [
                    {
                        "outcome": "removed",
                        "minors": ["1.36", "1.37"],
                        "message": 'no matches for kind "CronJob" in version "batch/v1beta1": removed in 1.25, use batch/v1',
                        "field": "",
                        "line": 1,
                        "replacement": {"apiVersion": "batch/v1", "kind": "CronJob"},
                        "rule": "",
                    }
                ],
            }
        ],
    }


def test_junit_has_suite_of_each_minor(lint):
    _, lines, _ = lint("--minors=1.36-", "-o", "junit", service=SERVICE, settings=CONFIG_MAP)
    suites = ET.fromstring("\n".join(lines))
    assert [suite.attrib for suite in suites] == [
        {"name": f"Kubernetes {minor}", "tests": "2", "failures": "1", "errors": "0"}
        for minor in ("1.36", "1.37")
    ]
    assert [case.attrib["name"] for case in suites.iter("testcase")][:2] == [
        "service/web",
        "configmap/settings",
    ]


def test_object_that_does_not_fit_to_others_is_broken(lint):
    code, lines, errors = lint(web=WEB, service=SELECTING)
    assert (code, errors) == (1, [])
    assert lines == [
        "OBJECT        1.37",
        "service/web   broken",
        "",
        "service/web (namespace shop)",
        (
            "  service.yaml:6: broken: spec.ports[0].targetPort: no container of deployment.apps/web has a port named"
            ' "htpp": they have http [service-target-port]'
        ),
        "",
        "2 objects against 1.37: 1 broken, 1 accepted",
    ]
    assert lint("--fail-on=refused", web=WEB, service=SELECTING)[0] == 0
    assert lint("--disable=service-target-port", web=WEB, service=SELECTING)[:2] == (
        0,
        ["2 objects against 1.37: 2 accepted"],
    )


def test_object_of_cluster_is_noted_and_fails_never(lint):
    code, lines, _ = lint(
        "--fail-on=warned", web=WEB.replace("containers:", "priorityClassName: gold\n      containers:")
    )
    assert (code, lines[-1]) == (0, "1 object against 1.37: 1 noted")


def test_rule_that_chart_breaks_for_some_minors_names_these(lint, tmp_path, program):
    port = '$(case "$*" in *=1.36.*) echo http;; *) echo htpp;; esac)'
    texts = f"---\n# Source: web/a.yaml\n{WEB}---\n# Source: web/b.yaml\n{SELECTING}".replace("htpp", port)
    program("helm", f"#!/bin/sh\ncat <<END\n{texts}END\n")
    (tmp_path / "web").mkdir()
    (tmp_path / "web/Chart.yaml").write_text("name: web")
    _, lines, _ = lint("--minors=1.35-1.37", "web")
    assert lines[:2] == ["OBJECT        1.35     1.36   1.37", "service/web   broken   ok     broken"]
    assert lines[4].startswith("  web/b.yaml: broken in 1.35, 1.37: spec.ports[0].targetPort: ")


def test_process_ends_without_examining_the_objects_of_servers(tmp_path):
    (tmp_path / "a.yaml").write_text(CONFIG_MAP)
    program = (
        "import atexit, gc, sys, threading\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, threading.active_count(), file=sys.stderr))\n"
        "from mockube.cli.main import main\n"
        "sys.exit(main(['lint', '--minors=1.37', 'a.yaml']))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ended.returncode, ended.stderr) == (0, "True 1\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_at_terminal_and_erased(lint, tmp_path, program, monkeypatch):
    program("helm", f"#!/bin/sh\ncat <<END\n{CONFIG_MAP}END\n")
    (tmp_path / "web").mkdir()
    (tmp_path / "web/Chart.yaml").write_text("name: web")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    code, lines, _ = lint("--minors=1.36-", "web")
    assert (code, lines) == (0, ["1 object against 1.36-1.37: 1 accepted"])
    assert terminal.getvalue().startswith("\r\x1b[Kmockube: rendering web for 1.36 ... 0.0 s")
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("fail_on", "code"), [("refused", 0), ("dropped", 1), ("warned", 1), ("never", 0)])
def test_exit_code_depends_on_outcome(lint, fail_on, code):
    assert lint(f"--fail-on={fail_on}", service=SERVICE)[0] == code


def test_chart_is_rendered_for_each_minor(lint, tmp_path, program):
    program("helm", HELM)
    (tmp_path / "v.yaml").touch()
    (tmp_path / "web").mkdir()
    (tmp_path / "web/Chart.yaml").write_text("name: web")
    arguments = ("--minors=1.36-", "--namespace=shop", "--set=a=b", "--values=v.yaml")
    code, lines, _ = lint(*arguments, "web")
    assert (code, lines) == (
        1,
        [
            "OBJECT               1.36      1.37",
            "chart/web            refused   -",
            "configmap/settings   -         dropped",
            "",
            "chart/web",
            "  web: refused in 1.36: chart requires kubeVersion: >=1.37.0",
            "",
            "configmap/settings",
            '  web/templates/settings.yaml: dropped in 1.37: unknown field "unknown"',
            "",
            "2 objects against 1.36-1.37: 1 refused, 1 dropped",
        ],
    )


def test_flags_of_chart_are_passed_to_helm(lint, tmp_path, program):
    program("helm", '#!/bin/sh\necho "$@" > arguments\n')
    (tmp_path / "v.yaml").touch()
    with tarfile.open(tmp_path / "web-1.tgz", "w:gz") as archive:
        archive.add(tmp_path / "v.yaml", "web/Chart.yaml")
    code, _, errors = lint("web-1.tgz", "--namespace=shop", "--release=r", "--set=a=b", "--values=v.yaml")
    assert (code, errors) == (2, ["mockube: no objects in web-1.tgz"])
    *arguments, api_versions = sorted((tmp_path / "arguments").read_text().split(), key=len)
    assert " ".join(sorted(arguments)) == (
        "--include-crds --kube-version=1.37.2 --namespace=shop --set=a=b --values=v.yaml r template web-1.tgz"
    )
    assert api_versions.startswith("--api-versions=v1,")


WEB_CHART = {"Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}"}
API_VERSIONS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
{{- range list "policy/v1/PodDisruptionBudget" "resource.k8s.io/v1/ResourceClaim" "v1/Eviction"
    "example.com/v1" "example.com/v1/Website" "example.com/v2" "other.com/v1/Other" "control.mockube.dev/v1alpha1" "asked.com/v1" }}
  {{ . | replace "/" "." }}: "{{ $.Capabilities.APIVersions.Has . }}"
{{- end }}
"""


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    return helm_binary.helm(tmp_path_factory)


def write_chart(folder, **templates):
    for name, text in {
        **WEB_CHART,
        **{f"templates/{name}.yaml": text for name, text in templates.items()},
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)
def test_chart_finds_kinds_that_minor_serves_and_files_define(lint, tmp_path, helm, monkeypatch):
    monkeypatch.setenv("PATH", f"{helm.parent}{os.pathsep}{os.environ['PATH']}")
    write_chart(tmp_path / "web", settings=API_VERSIONS)
    (tmp_path / "web/crds").mkdir()
    (tmp_path / "web/crds/websites.yaml").write_text(DEFINITION)
    other = (
        DEFINITION.replace("example.com", "other.com")
        .replace("Website", "Other")
        .replace("websites", "others")
    )
    inputs = read_inputs(("1.33", "1.34"), tmp_path / "web", other=other)
    found = {
        minor: next(each.tree["data"] for each in objects if each.kind == "ConfigMap")
        for minor, objects in inputs.items()
    }
    in_both = {
        "policy.v1.PodDisruptionBudget": "true",
        "v1.Eviction": "true",
        "example.com.v1": "true",
        "example.com.v1.Website": "true",
        "example.com.v2": "false",
        "other.com.v1.Other": "true",
        "control.mockube.dev.v1alpha1": "false",
        "asked.com.v1": "true",
    }
    new = "resource.k8s.io.v1.ResourceClaim"
    assert found == {"1.33": {**in_both, new: "false"}, "1.34": {**in_both, new: "true"}}


@pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)
@pytest.mark.parametrize("is_packed", [False, True], ids=["folder", "archive"])
def test_chart_does_not_find_version_that_minor_no_longer_serves(
    lint, tmp_path, helm, monkeypatch, is_packed
):
    monkeypatch.setenv("PATH", f"{helm.parent}{os.pathsep}{os.environ['PATH']}")
    versions = ("policy/v1beta1", "flowcontrol.apiserver.k8s.io/v1beta3", "batch/v1", "autoscaling/v2beta1")
    questions = (
        f'  {version.replace("/", ".")}: "{{{{ .Capabilities.APIVersions.Has "{version}" }}}}"'
        for version in versions
    )
    settings = "\n".join([CONFIG_MAP.partition("\ndata:")[0] + "\ndata:", *questions, ""])
    write_chart(tmp_path / "web", settings=settings)
    chart = tmp_path / "web"
    if is_packed:
        with tarfile.open(tmp_path / "web-1.tgz", "w:gz") as archive:
            archive.add(chart, "web")
        chart = tmp_path / "web-1.tgz"
    reader = InputReader(("1.31", "1.32"), ChartOptions(flags=["--api-versions=autoscaling/v2beta1"]))
    found = {minor: objects[0].tree["data"] for minor, objects in reader.read([str(chart)]).items()}
    in_both = {"policy.v1beta1": "false", "batch.v1": "true", "autoscaling.v2beta1": "true"}
    flow_control = "flowcontrol.apiserver.k8s.io.v1beta3"
    assert found == {"1.31": {**in_both, flow_control: "true"}, "1.32": {**in_both, flow_control: "false"}}


def read_inputs(minors, chart, **files):
    """Read a chart and, after it, some files."""
    for name, text in files.items():
        (chart.parent / f"{name}.yaml").write_text(text)
    options = ChartOptions(flags=["--api-versions=asked.com/v1"])
    return InputReader(minors, options).read(
        [str(chart), *(str(chart.parent / f"{name}.yaml") for name in files)]
    )


def test_kustomization_is_built(lint, tmp_path, program):
    program("kubectl", f"#!/bin/sh\ncat <<END\n{CONFIG_MAP}END\n")
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay/kustomization.yaml").write_text("resources: [x.yaml]")
    assert lint("overlay")[1] == ["1 object against 1.37: 1 accepted"]
    program("kubectl", "#!/bin/sh\necho 'error: no such file' >&2; exit 1\n")
    assert lint("overlay")[1][-3:] == [
        "  overlay: refused: no such file",
        "",
        "1 object against 1.37: 1 refused",
    ]


def test_folder_leaves_out_what_cannot_be_applied(lint, tmp_path):
    texts = {
        "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        "mkdocs.yml": "a: !!python/name:b ''\n",
        "settings.yaml": CONFIG_MAP,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert lint(".")[1] == ["1 object against 1.37: 1 accepted"]


def test_entry_of_folder_that_is_no_file_does_not_stop_the_check(lint, tmp_path):
    folder = tmp_path / "objects"
    folder.mkdir()
    (folder / "a.yaml").write_text(CONFIG_MAP)
    (folder / "link.yaml").symlink_to("nothing")
    os.mkfifo(folder / "pipe.yaml")
    _, lines, _ = lint("objects")
    assert [line for line in lines if line.startswith(("  ", "3 objects"))] == [
        "  objects/link.yaml: refused: No such file or directory",
        "  objects/pipe.yaml: refused: this is a named pipe, and not a file",
        "3 objects against 1.37: 2 refused, 1 accepted",
    ]


def test_pipe_that_is_named_is_read(lint, tmp_path):
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as file:
        file.write(CONFIG_MAP)
    try:
        assert lint(f"/dev/fd/{reader}")[:2] == (0, ["1 object against 1.37: 1 accepted"])
    finally:
        os.close(reader)


def test_items_of_json_list_are_objects(lint, tmp_path):
    name = {"metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}
    other = {**name, "metadata": {"name": "b"}, "dat": 1}
    (tmp_path / "list.json").write_bytes(orjson.dumps([name, None, [name], other]))
    _, lines, _ = lint("list.json")
    assert [line for line in lines if line.startswith("  ")] == [
        "  list.json:1: refused: not an object: it is null",
        "  list.json:1: refused: not an object: it is a list",
        '  list.json:1: dropped: unknown field "dat" (did you mean "data"?)',
    ]


@pytest.mark.parametrize(
    "output", [(), ("-o", "json"), ("-o", "junit"), ("-o", "sarif")], ids=["text", "json", "junit", "sarif"]
)
def test_names_of_objects_cannot_control_a_terminal_or_a_job(lint, tmp_path, output):
    text = r"""
apiVersion: v1
kind: "::error::kind\n::error::kind"
metadata: {name: "\e[31m##[error]name\u202e", namespace: "\x9b\r\n::warning::a"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "\n::error::"}
"""
    (tmp_path / "\udcff\n::error::.yaml").write_text(text)
    code, lines, _ = lint(".", *output)
    assert code == 1
    assert all(line.isprintable() for line in lines)
    assert not [line for line in lines if line.lstrip().startswith("::") or "##" in line]
    assert "error::kind" in "".join(lines)


@pytest.mark.parametrize("arguments", [("-f", "a.yaml"), ("-fa.yaml",), ("--filename=a.yaml",)])
def test_flag_of_kubectl_and_helm_is_refused_with_what_to_type(lint, capsys, arguments):
    with pytest.raises(SystemExit) as ending:
        lint(*arguments)
    assert ending.value.code == 2
    assert "name manifests without a flag, and the values of a chart by --values" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "no file: use `mockube lint FILE...`, or `-` for standard input"),
        (("no.yaml",), 'the path "no.yaml" does not exist'),
        (("--packs=no", "a.yaml"), 'pack "no"'),
        (
            ("--disable=probe-prot", "a.yaml"),
            '--disable: there is no rule probe-prot: did you mean "probe-port"?',
        ),
        (("chart",), "chart is a chart, and helm, which renders it, is not on PATH"),
        (("--values=a.yaml,no.yaml", "a.yaml"), '--values: the path "no.yaml" does not exist'),
        (("--set-file=a=no.txt", "a.yaml"), '--set-file: the path "no.txt" does not exist'),
        (("chart.tgz",), "chart.tgz is not a packed chart, or is damaged: "),
        (("cut.tgz",), "cut.tgz is not a packed chart, or is damaged: "),
        (("other.tgz",), "other.tgz is not a packed chart: it has no Chart.yaml"),
        (("socket.yaml",), "socket.yaml: this is a socket, and not a file"),
        (("/dev/zero",), "/dev/zero: this is a device, and not a file"),
    ],
)
def test_command_line_that_cannot_be_run_exits_with_2(lint, tmp_path, program, arguments, problem):
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart/Chart.yaml").write_text("name: web")
    (tmp_path / "a.yaml").write_text(CONFIG_MAP)
    (tmp_path / "chart.tgz").write_bytes(b"")
    with tarfile.open(tmp_path / "other.tgz", "w:gz") as archive:
        archive.add(tmp_path / "a.yaml", "web/values.yaml")
    (tmp_path / "cut.tgz").write_bytes((tmp_path / "other.tgz").read_bytes()[:60])
    with socket.socket(socket.AF_UNIX) as unix_socket:
        unix_socket.bind("socket.yaml")
    code, lines, errors = lint(*arguments)
    assert (code, lines, len(errors)) == (2, [], 1)
    assert problem in errors[0]
