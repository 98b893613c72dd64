"""The summary of a report, and its Markdown and JSON, which have a limited size."""

import orjson
import pytest

from mockube.failure import UsageError
from mockube.report.recording import ContainerLog, ObjectIdentity, Subject
from mockube.report.summary import LEVELS, MAX_TEXT, summarize
from mockube.report.writing import WRITERS, check_path
from tests.support.reports import ADMIN, changes_to, explanation, recording, request, tree_of

POD = tree_of("Pod", "web-1", owner="web", nodeName="")
DEPLOYMENTS = [tree_of("Deployment", "web", replicas=3), tree_of("Deployment", "web", replicas=0)]
NODES = [
    {"node": f"node-{n}", "plugin": "NodeAffinity", "reason": "didn't match", "detail": "lacks disk=ssd"}
    for n in range(30)
]


def small():
    changes = changes_to("Deployment", "web", *DEPLOYMENTS, users=[ADMIN, "alice"])
    return recording(
        objects={"pods": [POD], "deployments.apps": [DEPLOYMENTS[1]]},
        changes=[*changes, *changes_to("Pod", "web-1", POD, first=5)],
        explanations=[
            explanation(
                POD, "none of 4 nodes can take the pod", nodes=NODES, evidence=[{"text": "0/4 nodes"}]
            )
        ],
        similar={ObjectIdentity("pods", "default", "web-1"): [ObjectIdentity("pods", "default", "web-2")]},
        logs=[
            ContainerLog(
                namespace="default", pod="web-1", container="main", lines=["it ends", "```", "</script>"]
            )
        ],
        requests=[request("1", 403, message="pods is forbidden")],
        refusals={
            "1": {
                "cause": "no rule lets bob create pods",
                "remedies": [{"text": "Bind it", "command": "kubectl x"}],
            }
        },
        subject=Subject(title="test_web.py::test_it", result="failed in its call", text="assert 1 == 2"),
    )


def large():
    """A recording of which all is too much for a text."""
    pods = [tree_of("Pod", f"pod-{n}") for n in range(300)]
    changes = [
        change
        for n, pod in enumerate(pods)
        for change in changes_to("Pod", pod["metadata"]["name"], pod, users=[f"user-{n}"])
    ]
    logs = [
        ContainerLog(namespace="default", pod=f"pod-{n}", container="a", lines=["x" * 400] * 40)
        for n in range(300)
    ]
    return recording(
        objects={"pods": pods},
        changes=changes,
        logs=logs,
        explanations=[
            explanation(pod, "y" * 2000, nodes=NODES, evidence=[{"text": "z" * 2000}] * 50) for pod in pods
        ],
        requests=[request(str(n), 403, message=f"{n} " + "m" * 4000) for n in range(50)],
        subject=Subject(title="t" * 5000, text="e" * 50_000),
    )


def test_problem_has_cause_and_last_writes_of_its_object_and_owner():
    (problem,) = summarize(small())["problems"]
    assert problem["cause"] == "none of 4 nodes can take the pod"
    assert problem["key"] == "pods|default|web-1"
    assert problem["affected"] == [{"kind": "Pod", "namespace": "default", "name": "web-2"}]
    assert problem["commands"] == ["mockube why pod/web-1 -n default", "mockube log pod/web-1 -n default"]
    fields = {(write["author"], *write["fields"]) for write in problem["lastWrites"]}
    assert ("alice (kubectl)", "spec.replicas: 3 -> 0") in fields


SETTINGS = {"kind": "Secret", "apiVersion": "v1", "namespace": "default", "name": "settings"}
NO_KEY = "the container main needs the key token of the Secret settings, which has no such key"


BOB = {"revision": 7, "type": "MODIFIED", "user": "bob", "program": "kubectl-patch", "before": '"***"'}
MANAGER = {
    "revision": 0,
    "type": "MODIFIED",
    "program": "kubectl",
    "verb": "apply",
    "source": "managedFields",
}
"""What is known of a write that is older than the history."""


def broken(*, padding=0, write=BOB):
    """A recording in which bob removed a key that 12 Deployments, their Services and their pods need."""
    origin = {
        "object": SETTINGS,
        "field": "data.token",
        "writes": [write],
        "command": "mockube log secret/settings",
    }
    objects, explanations = {"pods": [], "deployments.apps": [], "services": []}, []
    for n in range(1, 13):
        trees = {
            "deployments.apps": tree_of("Deployment", f"web-{n}"),
            "services": tree_of("Service", f"web-{n}"),
            "pods": tree_of("Pod", f"web-{n}-a", owner=f"web-{n}"),
        }
        trees["services"]["metadata"]["uid"] = f"service-{n}"
        for resource, tree in trees.items():
            objects[resource].append(tree)
            cause = NO_KEY if resource == "pods" else f"1 of 1 pods are not ready; web-{n}-a: {NO_KEY}"
            explanations.append(
                explanation(tree, cause, origins=[origin], evidence=[{"text": "x" * padding}] * 6)
            )
    secret = tree_of("Secret", "settings") | {"data": {}}
    before = secret | {"data": {"token": "***"}}
    changes = [
        *changes_to("Secret", "settings", before, secret, first=6, users=[ADMIN, "bob"]),
        *(
            change
            for n in range(30)
            for change in changes_to("Pod", f"p-{n}", POD, first=10 + n, users=[f"user-{n}"])
        ),
    ]
    return recording(objects=objects | {"secrets": [secret]}, explanations=explanations, changes=changes)


def test_objects_that_one_write_broke_are_one_problem_with_its_writer():
    summary = summarize(broken())
    (problem,) = summary["problems"]
    assert summary["counts"]["notHealthy"] == 36
    assert (problem["cause"], problem["affectedCount"], len(problem["affected"])) == (NO_KEY, 35, 35)
    assert [each["kind"] for each in problem["affected"]][-11:] == ["Pod"] * 11
    (origin,) = problem["origins"]
    assert (origin["key"], origin["writes"][0]["user"]) == ("secrets|default|settings", "bob")


def test_markdown_begins_with_the_object_of_the_cause_and_its_last_writer():
    lines = WRITERS[".md"](broken()).splitlines()
    assert lines[lines.index("## What is not healthy, and why") + 2 :][:6] == [
        "### `secret/settings` in `default`",
        "",
        NO_KEY,
        "",
        '- revision 7 `bob (kubectl-patch)` wrote `secret/settings` in `default`: `data.token: "***" -> (not set)`',
        next(
            line
            for line in lines
            if line.startswith("- not healthy because of it: deployment `web-1`, `web-2`, ")
        ),
    ]


@pytest.mark.parametrize("suffix", [".md", ".json"])
def test_writers_that_a_problem_names_are_in_a_text_of_whatever_size(suffix):
    text = WRITERS[suffix](broken(padding=100_000))
    assert len(text.encode()) <= MAX_TEXT
    assert "bob (kubectl-patch)" in text or '"bob"' in text
    authors = [each["user"] for each in summarize(broken(), LEVELS[-1])["authors"]]
    assert authors == ["user-29", "bob"]


@pytest.mark.parametrize("suffix", WRITERS)
def test_manager_of_a_field_whose_user_is_not_known_is_in_each_format(suffix):
    text = WRITERS[suffix](broken(write=MANAGER))
    assert "managedFields" in text


def test_pods_that_a_user_created_with_the_same_mistake_are_one_problem():
    def created(name, user, count):
        pod = tree_of("Pod", name)
        write = {"revision": 1, "type": "ADDED", "user": user, "program": "kubectl", "after": "{}"}
        subject = {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": name}
        origin = {"object": subject, "field": "spec.containers[a].resources", "writes": [write]}
        return explanation(pod, f"the pod {name} was killed {count} times", origins=[origin])

    found = [created("a", "ada", 2), created("b", "ada", 31), created("c", "bob", 1)]
    problems = summarize(recording(explanations=found))["problems"]
    assert [(each["object"]["name"], each.get("affectedCount", 0)) for each in problems] == [
        ("a", 1),
        ("c", 0),
    ]


@pytest.mark.parametrize(
    ("causes", "count"),
    [
        (("ended with exit code 7", "ended with exit code 28"), 2),
        (("fails: GET / at port 80", "fails: GET / at port 81"), 2),
        (("used more than its limit of 64Mi", "used more than its limit of 128Mi"), 2),
        (("used more than its limit of 64000000", "used more than its limit of 128000000"), 2),
        (("requests 900 of cpu", "requests 901 of cpu"), 2),
        (("code 1, and has been restarted 4 times", "code 1, and has been restarted 31 times"), 1),
        (("1 of 3 are not ready; web-0: it ends", "2 of 5 are not ready; web-12: it ends"), 1),
        (("the pod x-5bf55668f7-tqv2g has it", "the pod x-76d46f6bf9-x56c5 has it"), 1),
        (("Get http://10.1.2.3:81: refused", "Get http://10.1.200.4:81: refused"), 1),
        (("Get http://10.1.2.3:81: refused", "Get http://10.1.2.3:82: refused"), 2),
    ],
)
def test_causes_with_other_numbers_are_one_problem_only_if_the_numbers_are_no_part_of_the_mistake(
    causes, count
):
    def created(name, cause):
        subject = {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": name}
        write = {"revision": 1, "type": "ADDED", "user": "ada"}
        origin = {"object": subject, "field": "spec.containers[a]", "writes": [write]}
        return explanation(tree_of("Pod", name), cause, origins=[origin])

    explanations = [created(f"pod-{number}", cause) for number, cause in enumerate(causes)]
    assert len(summarize(recording(explanations=explanations))["problems"]) == count


@pytest.mark.parametrize("suffix", [".md", ".json"])
def test_causes_of_many_problems_are_whole(suffix):
    def cause(number):
        return (
            f"the container c ended with exit code {number}: its own program failed, and printed {'z' * 80}"
        )

    names = [f"web-{number}" for number in range(30)]
    pods = [tree_of("Pod", name) for name in names]
    logs = [
        ContainerLog(namespace="default", pod=name, container="c", lines=["l" * 300] * 40) for name in names
    ]
    subjects = [{"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": name} for name in names]
    writes = [{"revision": 1, "type": "ADDED", "user": "ada", "after": "x" * 300}]
    origins = [[{"object": each, "field": "spec.containers[c]", "writes": writes}] for each in subjects]
    explanations = [
        explanation(pod, cause(number), origins=origins[number]) for number, pod in enumerate(pods)
    ]
    text = WRITERS[suffix](recording(objects={"pods": pods}, explanations=explanations, logs=logs))
    assert len(text.encode()) <= MAX_TEXT
    assert all(cause(number) in text for number in range(30))


def test_workload_and_its_pod_that_name_a_field_of_the_workload_are_one_problem():
    def created(tree, cause, name="web", field="spec.template.spec.containers[c]"):
        write = {"revision": 1, "type": "ADDED", "user": "ada", "program": "kubectl", "after": "{}"}
        subject = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": name}
        return explanation(tree, cause, origins=[{"object": subject, "field": field, "writes": [write]}])

    found = [
        created(tree_of("Deployment", "web"), "1 of 1 are not ready; web-a: it ends"),
        created(tree_of("Pod", "web-a", owner="web"), "it ends"),
        created(tree_of("Pod", "web-b", owner="web"), "it has no volume", field="spec.template.spec.volumes"),
        created(tree_of("Pod", "other-a", owner="other"), "it has none", name="other"),
    ]
    problems = summarize(recording(explanations=found))["problems"]
    assert [
        (each["object"]["name"], [other["name"] for other in each.get("affected", ())]) for each in problems
    ] == [("web-a", ["web"]), ("web-b", []), ("other-a", [])]


def test_change_of_a_user_that_only_one_of_several_broken_objects_names_is_in_their_problem():
    def origin(name, user):
        write = {"revision": 1, "type": "MODIFIED", "user": user}
        return {"object": SETTINGS | {"name": name}, "field": "data.token", "writes": [write]}

    found = [
        explanation(tree_of("Deployment", "a"), "short", origins=[origin("one", "ada")]),
        explanation(
            tree_of("Deployment", "b"), "longer", origins=[origin("one", "ada"), origin("two", "bob")]
        ),
    ]
    (problem,) = summarize(recording(explanations=found))["problems"]
    assert [each["object"]["name"] for each in problem["origins"]] == ["one", "two"]


def test_owner_whose_cause_is_that_of_its_pod_is_no_problem_of_its_own():
    pod, owner = tree_of("Pod", "web-a", owner="web"), tree_of("Deployment", "web")
    subject = {"kind": "Pod", "namespace": "default", "name": "web-a"}
    explanations = [
        explanation(
            owner,
            "0 of 1 ready; web-a: it ends with 1",
            related=[{"object": subject, "cause": "it ends with 1"}],
        ),
        explanation(pod, "it ends with 1"),
        explanation(
            tree_of("Deployment", "other"), "it is paused", related=[{"object": subject, "cause": "is near"}]
        ),
    ]
    problems = summarize(recording(explanations=explanations))["problems"]
    assert [
        (each["object"]["name"], [other["name"] for other in each.get("affected", ())]) for each in problems
    ] == [
        ("web-a", ["web"]),
        ("other", []),
    ]


def test_markdown_has_cause_and_last_writes_of_clients():
    text = WRITERS[".md"](small())
    assert text.startswith("# test_web.py::test_it\n\n**failed in its call**\n")
    assert "### `pod/web-1` in `default`\n\nnone of 4 nodes can take the pod\n" in text
    assert (
        "`alice (kubectl)`, 1 write:\n\n- 2026-01-01T00:00:02.000000Z `deployment/web` in `default`, patch: `spec.replicas: 3 -> 0`"
        in text
    )
    assert "no rule lets bob create pods" in text
    assert "`mockube why pod/web-1 -n default`" in text


def test_json_is_the_summary():
    assert orjson.loads(WRITERS[".json"](small())) == summarize(small(), LEVELS[0])


def test_texts_of_a_cluster_are_no_markup():
    pod = tree_of("Pod", "web-1")
    cause = "<img src=x> @someone [a](http://b) `c` | d\n# e"
    text = WRITERS[".md"](recording(objects={"pods": [pod]}, explanations=[explanation(pod, cause)]))
    assert "&lt;img src=x> @\u200bsomeone [a]\\(http://b) 'c' \\| d # e\n" in text
    fenced = WRITERS[".md"](small())
    assert "````text\nit ends\n```\n</script>\n````" in fenced


def test_room_that_is_left_is_for_more_causes():
    def text_of(count, length):
        objects = [tree_of("ConfigMap", f"web-{number}") for number in range(count)]
        causes = [
            explanation(each, f"{chr(97 + place % 26) * 5} {'x' * length}{place}")
            for place, each in enumerate(objects)
        ]
        return WRITERS[".md"](recording(objects={"configmaps": objects}, explanations=causes))

    assert text_of(50, 60).count("### ") == 50
    assert "causes of objects that are not healthy are left out" not in text_of(50, 60)
    cut = text_of(50, 400)
    assert "left out" in cut
    assert MAX_TEXT * 0.7 < len(cut.encode()) <= MAX_TEXT


@pytest.mark.parametrize("suffix", [".md", ".json"])
def test_text_has_at_most_20_kib_and_says_what_is_left_out(suffix):
    text = WRITERS[suffix](large())
    assert len(text.encode()) <= MAX_TEXT
    assert "are left out: `mockube report -o run.html` has more" in text.replace("'", "`")
    assert "pod-0" in text


def test_healthy_cluster_has_an_empty_summary():
    assert "Nothing." in WRITERS[".md"](recording())
    assert "problems" not in summarize(recording())


def test_name_of_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"ends with \.html, \.md or \.json"):
        check_path(tmp_path / "run.txt")


def test_warnings_of_an_object_of_another_kind_with_the_same_name_are_shown():
    def event(kind, api_version):
        about = {"kind": kind, "apiVersion": api_version, "namespace": "default", "name": "web-1"}
        return {"type": "Warning", "reason": "Failed", "involvedObject": about}

    events = [event("Pod", "v1"), event("Service", "v1"), event("Pod", "example.com/v1")]
    found = summarize(recording(events=events, explanations=[explanation(POD, "a cause")]))
    assert [(each["kind"], each["apiVersion"]) for each in found["warnings"]] == [
        ("Pod", "example.com/v1"),
        ("Service", "v1"),
    ]


@pytest.mark.parametrize("suffix", [".md", ".json"])
def test_text_of_the_worst_characters_and_many_notes_has_at_most_20_kib(suffix):
    worst = "\x01\U0001f600&<" * 2_000
    pod = tree_of("Pod", "web-1")
    fault = {"metadata": {"name": worst}, "spec": {"match": [worst] * 100}}
    text = WRITERS[suffix](
        recording(
            objects={"pods": [pod]},
            notes=[worst] * 100,
            faults=[fault] * 30,
            explanations=[
                explanation(
                    pod, worst, nodes=[dict.fromkeys(NODES[0], worst)] * 30, evidence=[{"text": worst}]
                )
            ],
            requests=[request("1", 403, message=worst)],
            subject=Subject(title=worst, result=worst, text=worst),
        )
    )
    assert len(text.encode()) <= MAX_TEXT
    assert " more notes are left out: " in text


def test_commands_are_whole_or_left_out():
    long = f"kubectl patch pod web-1 -p '{'x' * 600}'"
    remedies = [{"text": "a", "command": long}, {"text": "b", "command": "kubectl get pods"}]
    found = recording(objects={"pods": [POD]}, explanations=[explanation(POD, "a cause", remedies=remedies)])
    (problem,) = summarize(found, LEVELS[0])["problems"]
    assert problem["remedies"] == [{"text": "a"}, {"text": "b", "command": "kubectl get pods"}]
    assert long in str(summarize(found))


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        ("~~~ a", "\\~\\~\\~ a"),
        ("* a", "\\* a"),
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("1. a", "1\\. a"),
        ("&lt;b&#64;", "&amp;lt;b&amp;#64;"),
        ("a && b", "a && b"),
        ("*.example.com and *.other, __x__", "\\*.example.com and \\*.other, \\_\\_x\\_\\_"),
        ("a_b_c is ~old~, C:\\*", "a_b_c is \\~old\\~, C:\\\\\\*"),
    ],
)
def test_cause_is_no_markup(cause, line):
    text = WRITERS[".md"](recording(explanations=[explanation(POD, cause)]))
    assert f"\n\n{line}\n" in text


@pytest.mark.parametrize("suffix", [*WRITERS])
def test_request_without_a_verb_and_a_user_is_in_each_format(suffix):
    refused = recording(requests=[request("1", 405, user="", verb="")], revision=5)
    assert WRITERS[suffix](refused)
    assert "- 405 `- /api/v1/pods` of `nobody`: " in WRITERS[".md"](refused)


def test_refused_requests_faults_and_marks_that_are_left_out_are_counted():
    found = recording(
        requests=[request(str(n), 403, message=f"refused {n}") for n in range(300)],
        faults=[{"metadata": {"name": f"fault-{n}"}, "spec": {}} for n in range(21)],
        marks=[{"metadata": {"name": f"mark-{n}"}, "spec": {"revision": n}} for n in range(22)],
    )
    assert summarize(found)["notes"] == [
        "280 more refused requests are left out.",
        "1 more faults are left out.",
        "2 more marks are left out.",
    ]


def test_object_of_the_cluster_has_no_namespace():
    node = tree_of("Node", "node-1", namespace="")
    found = recording(objects={"nodes": [node]}, explanations=[explanation(node, "its kubelet is away")])
    (problem,) = summarize(found)["problems"]
    assert problem["key"] == "nodes||node-1"
    assert problem["commands"] == ["mockube why node/node-1", "mockube log node/node-1"]
    assert "### `node/node-1`\n\nits kubelet is away\n" in WRITERS[".md"](found)


def test_request_whose_connection_was_cut_was_refused():
    cut = request("1", 0, isCut=True, fault="cut-off")
    assert "- cut `create /api/v1/pods` of `bob`, by the fault `cut-off`: " in WRITERS[".md"](
        recording(requests=[cut])
    )
