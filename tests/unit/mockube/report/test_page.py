"""A report as one HTML file: its script, its policy, its size."""

import base64
import gzip
import re
from hashlib import sha256

import orjson
import pytest

from mockube.report.bundle import bundle
from mockube.report.page import MAX_BYTES, MIN_BYTES, comparison_page, max_bytes, page_of
from mockube.report.recording import ContainerLog, RecordedRun, Subject
from mockube.report.thinning import thinned
from tests.support.reports import changes_to, explanation, recording, request, tree_of

HOSTILE = '</script><script>window.entered=1</script><img src=x onerror="window.entered=1"><!--'


def data_of(page):
    packed = re.search(r'id="data">([^<]*)</script>', page)[1]
    return orjson.loads(gzip.decompress(base64.b64decode(packed)))


def hashed(text):
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def test_policy_allows_the_script_and_the_style_of_the_page_alone():
    page = page_of(recording())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashed(script)}'; style-src 'sha256-{hashed(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_hostile_texts_are_no_markup():
    pod = tree_of("Pod", "web")
    pod["metadata"]["annotations"] = {"note": HOSTILE}
    log = ContainerLog(namespace="default", pod="web", container="web", lines=[HOSTILE])
    page = page_of(
        recording(objects={"pods": [pod]}, logs=[log], subject=Subject(title=HOSTILE, text=HOSTILE))
    )
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<img" not in page.partition('<script type="module">')[0]
    assert data_of(page)["objects"]["pods"][0]["metadata"]["annotations"]["note"] == HOSTILE


def test_summary_can_be_read_without_scripts():
    page = page_of(recording(subject=Subject(title="a <test>", result="failed")))
    assert "<pre># a &amp;lt;test>" in page or "<pre># a &amp;lt;test&gt;" in page
    assert "<title>a &lt;test&gt;</title>" in page


def test_same_recording_has_the_same_bytes():
    changes = changes_to("Pod", "web", tree_of("Pod", "web"))
    assert page_of(recording(changes=changes)) == page_of(recording(changes=[*changes]))


def test_modules_become_one_script_in_the_order_of_imports():
    modules = {
        "ui/main.js": 'import lib from "./lib.js";\nimport { b as c } from "./api.js";\nexport const main = lib(c);\n',
        "ui/lib.js": "var x=1;export default function(s){return s+x}\n",
        "page/other.js": 'export { b, later as d } from "../ui/b.js";\n',
        "ui/b.js": "export async function* later() {}\nconst b = 2;\nexport { b };\n",
    }
    assert bundle(modules.__getitem__, "ui/main.js", {"ui/api.js": "page/other.js"}) == (
        "const $ui_lib_js = (() => {\nvar x=1;const $default = function(s){return s+x}\nreturn { $default: $default };\n})();\n"
        "const $ui_b_js = (() => {\nasync function* later() {}\nconst b = 2;\nreturn { b: b, later: later };\n})();\n"
        "const $page_other_js = (() => {\n\nreturn { b: $ui_b_js.b, d: $ui_b_js.later };\n})();\n"
        "const $ui_main_js = (() => {\nconst lib = $ui_lib_js.$default;\nconst { b: c } = $page_other_js;\n"
        "const main = lib(c);\nreturn { main: main };\n})();"
    )


def test_limit_grows_with_the_changes():
    assert [max_bytes(count) for count in (0, 100_000, 1_000_000)] == [MIN_BYTES, MAX_BYTES, MAX_BYTES]
    assert MIN_BYTES < max_bytes(20_000) < MAX_BYTES


def noise(number, length):
    """Return text that does not get small: digests."""
    digests = (sha256(f"{number} {part}".encode()).hexdigest() for part in range(length // 64 + 1))
    return "".join(digests)[:length]


def some_data():
    versions = [tree_of("Pod", "a", field=noise(n, 400)) for n in range(30)]
    return {
        "summary": {},
        "changes": changes_to("Pod", "a", *versions),
        "requests": [request(str(n), 200, verb="list") for n in range(2_500)],
        "events": [],
        "objects": {"pods": [tree_of("Pod", f"p{n}") for n in range(50)]},
    }


def size(data):
    return len(orjson.dumps(data))


def test_small_data_are_whole():
    assert thinned(some_data(), size, 10**9) == (some_data(), [])


def test_old_reads_are_left_out_first():
    data, notes = thinned(some_data(), size, size(some_data()) - 1)
    assert [len(data[name]) for name in ("changes", "requests")] == [30, 2_000]
    assert notes == ["500 requests are left out, to keep the file small: the oldest, reads first."]


def test_data_become_small_enough_and_each_kind_has_one_note():
    data, notes = thinned(some_data(), size, 2_000)
    assert size(data) <= 2_000
    assert [note.partition(" are left out")[0] for note in notes] == [
        f"{30 - len(data['changes'])} changes",
        f"{2_500 - len(data['requests'])} requests",
        f"{50 - len(data['objects']['pods'])} objects of pods",
    ]


def test_patches_are_left_out_before_changes():
    data = {**some_data(), "requests": [], "objects": {}}
    many = {**data, "changes": data["changes"] * 100}
    thin, notes = thinned(many, size, size(many) - 1_000)
    assert len(thin["changes"]) == 3_000
    assert notes == ["What 1000 changes changed is left out, to keep the file small: the oldest."]


def test_object_and_change_of_a_problem_are_not_left_out():
    data = some_data()
    first = data["changes"][0]["revision"]
    secret = tree_of("Secret", "settings", field=noise(1, 400))
    origin = {"key": "secrets|default|settings", "writes": [{"revision": first}]}
    data["objects"]["secrets"] = [tree_of("Secret", f"s{n}", field=noise(n, 400)) for n in range(60)] + [
        secret
    ]
    data["summary"] = {"problems": [{"key": "pods|default|p49", "origins": [origin]}]}
    thin, _ = thinned(data, size, 3_500)
    assert (thin["changes"][0]["revision"], "patch" in thin["changes"][0]) == (first, True)
    assert thin["objects"]["secrets"][-1] == secret
    assert [each["metadata"]["name"] for each in thin["objects"]["pods"]][-1] == "p49"


@pytest.mark.thorough
def test_page_of_too_much_has_its_limit_and_says_so():
    pods = [tree_of("Pod", f"p{n}", field=noise(n, 6_000)) for n in range(1_500)]
    page = page_of(recording(objects={"pods": pods}))
    assert len(page.encode()) <= MIN_BYTES
    assert "objects of pods are left out" in str(data_of(page)["summary"]["notes"])


def test_page_does_not_refer_to_itself_for_more():
    pods = [tree_of("Pod", f"pod-{n}") for n in range(120)]
    page = page_of(recording(explanations=[explanation(pod, "a cause") for pod in pods]))
    text = page.partition("<pre>")[2].partition("</pre>")[0]
    assert "more causes of objects that are not healthy are left out." in text
    assert "run.html" not in text
    assert "run.html" not in str(data_of(page)["summary"]["notes"])
    assert len(text.encode()) < 40_000


def test_bodies_of_old_requests_are_left_out_before_all_else():
    def created(number):
        created = request(str(number), 201)
        return {
            **created,
            "spec": {**created["spec"], "body": {"note": noise(number, 2_000)}, "bytes": 2_000},
        }

    data = {**some_data(), "requests": [created(number) for number in range(600)]}
    thin, notes = thinned(data, size, size(data) - 1)
    assert [len(thin[name]) for name in ("changes", "requests")] == [30, 600]
    assert ["body" in each["spec"] for each in thin["requests"]] == [False] * 100 + [True] * 500
    assert notes == ["The bodies of 100 requests are left out, to keep the file small: the oldest."]


def test_page_says_which_users_are_components():
    users = ["bob", "system:node:node-1", "", "system:anonymous"]
    requests = [request(user, 200, user=user) for user in users]
    assert data_of(page_of(recording(requests=requests)))["components"] == ["system:node:node-1"]


def test_steps_that_leave_nothing_out_are_not_measured():
    measured = []

    def size_of(data):
        measured.append(data)
        return size(data)

    data = {**some_data(), "requests": [], "objects": {}}
    thin, _ = thinned(data, size_of, size(data) - 1)
    assert len(thin["changes"]) == 15
    assert [len(each["changes"]) for each in measured] == [30, 15]


def test_objects_of_the_largest_resource_are_left_out_first():
    maps = [tree_of("ConfigMap", f"m{n}", data=noise(n, 10_000)) for n in range(4)]
    data = {**some_data(), "changes": [], "requests": []}
    data["objects"] = {**data["objects"], "configmaps": maps}
    thin, notes = thinned(data, size, size(data) - 15_000)
    assert [len(thin["objects"][resource]) for resource in ("pods", "configmaps")] == [50, 2]
    assert notes == ["2 objects of configmaps are left out, to keep the file small."]


def test_comparison_has_both_runs_and_the_text_without_scripts():
    changes = changes_to("Pod", "web", tree_of("Pod", "web"))
    run = RecordedRun(recording=recording(changes=changes), revisions=[1])
    page = comparison_page("a <finding>", f"what <happened> {HOSTILE}", {"one": run, "two": run})
    data = data_of(page)
    assert [(each["name"], each["revisions"], len(each["changes"])) for each in data["runs"]] == [
        ("one", [1], 1),
        ("two", [1], 1),
    ]
    assert "<title>a &lt;finding&gt;</title>" in page
    assert "what &lt;happened&gt;" in page
    assert page.count("<script") == 2


@pytest.mark.thorough
def test_comparison_of_too_much_has_the_limit_of_one_page():
    pods = [tree_of("Pod", f"p{n}", field=noise(n, 6_000)) for n in range(800)]
    run = RecordedRun(recording=recording(objects={"pods": pods}), revisions=[])
    page = comparison_page("large", "", {"one": run, "two": run})
    assert len(page.encode()) <= MIN_BYTES
    for each in data_of(page)["runs"]:
        assert "objects of pods are left out" in str(each["summary"]["notes"])
