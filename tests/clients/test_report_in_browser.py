"""A report in a real browser: opened from its file, it answers questions, and nothing in it runs."""

import re

import pytest

from mockube.report.page import comparison_page, page_of
from mockube.report.recording import ContainerLog, RecordedRun, Subject
from tests.support.processes.page import NARROW, WIDE, opened_file, violations
from tests.support.reports import ADMIN, changes_to, explanation, recording, request, tree_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

VIEWS = ("summary", "objects", "timeline", "requests", "events", "logs")
HOSTILE = '</script><script>window.entered=1</script><img src=x onerror="window.entered=1">'
NODES = [{"node": "node-1", "plugin": "NodeAffinity", "reason": "didn't match", "detail": "lacks disk=ssd"}]


def group(name, *resources):
    versions = [
        {
            "version": "v1",
            "resources": [
                {
                    "resource": plural,
                    "responseKind": {"kind": kind},
                    "scope": "Namespaced",
                    "verbs": ["get", "list"],
                }
                for plural, kind in resources
            ],
        }
    ]
    return {"items": [{"metadata": {"name": name}, "versions": versions}]}


def event(name, message):
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "9"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "large", "uid": "large"},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:09Z",
    }


@pytest.fixture
def recorded():
    """A run in which alice scaled a Deployment to 0, and a pod is pending."""
    before = tree_of("Deployment", "web", replicas=3)
    after = tree_of("Deployment", "web", replicas=0)
    pod = tree_of("Pod", "large", status={"phase": "Pending"})
    pod["metadata"]["annotations"] = {"note": HOSTILE}
    return recording(
        discovery=[
            group("", ("pods", "Pod"), ("events", "Event")),
            group("apps", ("deployments", "Deployment")),
        ],
        objects={"pods": [pod], "deployments.apps": [after]},
        changes=[
            *changes_to("Deployment", "web", before, after, users=[ADMIN, "alice"]),
            *changes_to("Pod", "large", pod, first=5, users=[HOSTILE]),
        ],
        events=[event("a", "0/1 nodes are available"), event("b", HOSTILE)],
        requests=[request("1", 201, user="alice"), request("2", 403, user="bob", message=HOSTILE)],
        logs=[
            ContainerLog(namespace="default", pod="large", container="main", lines=[HOSTILE, "the last line"])
        ],
        explanations=[
            explanation(pod, "no node has the label disk=ssd", nodes=NODES, evidence=[{"text": HOSTILE}])
        ],
        subject=Subject(title=HOSTILE, result="exit code 3", text=HOSTILE),
    )


@pytest.fixture
def report(recorded, tmp_path):
    path = tmp_path / "run.html"
    path.write_text(page_of(recorded))
    return path


@pytest.fixture
def comparison(recorded, tmp_path):
    """A comparison of the run with one in which nobody scaled the Deployment."""
    deployment = tree_of("Deployment", "web", replicas=3)
    other = recording(
        discovery=recorded.discovery,
        objects={"deployments.apps": [deployment]},
        changes=changes_to("Deployment", "web", deployment),
    )
    runs = {
        "Undisturbed": RecordedRun(recording=other, revisions=[1]),
        "Disturbed": RecordedRun(recording=recorded, revisions=[1, 2, 5]),
    }
    path = tmp_path / "finding.html"
    path.write_text(comparison_page(HOSTILE, f"finding 1: {HOSTILE}", runs))
    return path


async def test_author_of_a_field_is_found_by_its_name(report):
    async with opened_file(report) as page:
        await page.text("spec.replicas: 3 -> 0")
        search = page.tab.get_by_role("searchbox", name="Find in the report")
        await search.fill("replicas")
        await page.tab.get_by_text("no node has the label").wait_for(state="detached")
        writes = page.tab.get_by_role("region", name="Last writes")
        assert re.search(
            r"alice.*Deployment web.*spec\.replicas: 3 -> 0", await writes.inner_text(), re.DOTALL
        )
        await writes.get_by_role("button", name="Deployment web").first.click()
        await page.text("spec.replicas: 3 → 0")
        await page.tab.get_by_role("tab", name="YAML").click()
        line = page.tab.get_by_role("listitem").filter(has_text="replicas: 0").first
        assert await line.locator(".who").get_attribute("title") == "alice"


async def test_summary_says_why_a_pod_is_pending(report):
    async with opened_file(report) as page:
        await page.text("no node has the label disk=ssd")
        await page.text("lacks disk=ssd")
        await page.tab.get_by_role("button", name="Pod large").first.click()
        detail = page.tab.get_by_role("complementary", name="Pod large")
        await detail.get_by_role("tab", name="Why?", selected=True).wait_for()
        await detail.get_by_text("no node has the label disk=ssd").wait_for()
        assert await detail.get_by_role("tab", name="Act").count() == 0


async def test_slider_shows_objects_of_then(report):
    async with opened_file(report) as page:
        await page.go("#/objects?select=deployments.apps|default|web&tab=yaml&at=1")
        await page.text("replicas: 3")
        await page.tab.get_by_text("large", exact=True).wait_for(state="detached")
        await page.tab.get_by_role("button", name="Back to now").click()
        await page.text("replicas: 0")
        await page.text("large")


async def test_summary_follows_the_slider(report):
    async with opened_file(report) as page:
        await page.go("#/summary?at=1")
        await page.text("This is the chosen moment")
        problems = page.tab.get_by_role("region", name="Not healthy")
        assert re.search(r"Deployment\s+web.*0/3", await problems.inner_text(), re.DOTALL)
        assert "large" not in await problems.inner_text()
        writes = await page.tab.get_by_role("region", name="Last writes").inner_text()
        assert "kubernetes-admin (kubectl) 1 write\n" in writes
        assert "alice" not in writes
        await page.text("1 objects, 1 not healthy, 1 changes, 2 requests, 0 events")
        await page.go("#/summary?at=2")
        await page.text("spec.replicas: 0")
        await page.text("All objects are healthy.")
        await page.tab.get_by_role("button", name="Back to now").click()
        await page.text("no node has the label disk=ssd")
        assert (
            "spec.replicas: 3 -> 0" in await page.tab.get_by_role("region", name="Last writes").inner_text()
        )


async def test_lists_have_requests_events_and_logs(report):
    async with opened_file(report) as page:
        await page.go("#/requests")
        await page.tab.get_by_label("only refused and failed").check()
        rows = page.tab.get_by_role("row")
        assert await rows.count() == 2
        assert "bob" in await rows.last.inner_text()
        await page.go("#/events")
        await page.text("0/1 nodes are available")
        await page.go("#/logs")
        await page.text("the last line")


LONG_NAME = "a-deployment-with-quite-a-long-name-for-a-phone"
RECORD_DRAWING = """
() => {
  window.ticks = [];
  window.texts = [];
  const { fillRect, fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
    if (width <= 3 && height >= 11 && height <= 17) ticks.push({ x, width, y });
    fillRect.call(this, x, y, width, height);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    texts.push({ text, x, width: this.measureText(text).width, y });
    fillText.call(this, text, x, y);
  };
}
"""
DRAWN = """
async (expected) => {
  while (!texts.some(({ text }) => text === expected)) await new Promise((drawn) => requestAnimationFrame(drawn));
}
"""
COLLISIONS = """
(states) => {
  const drawn = texts.filter(({ text }) => states.includes(text));
  const crosses = (tick, text) => tick.y < text.y && tick.y > text.y - 15 && tick.x < text.x + text.width && tick.x + tick.width > text.x;
  return [drawn.length, drawn.filter((text) => ticks.some((tick) => crosses(tick, text))).length];
}
"""


@pytest.fixture
def busy_report(tmp_path):
    """A report of a Deployment with a long name, and many writes in the first seconds of its state."""
    versions = [
        tree_of("Deployment", LONG_NAME, replicas=3, paused=bool(number % 2), status={"readyReplicas": 1})
        for number in range(9)
    ]
    later = changes_to(
        "Pod", "web", tree_of("Pod", "web", owner=LONG_NAME, status={"phase": "Pending"}), first=59
    )
    found = recording(
        discovery=[
            group("", ("pods", "Pod")),
            group("apps", ("deployments", "Deployment")),
        ],
        objects={
            "deployments.apps": [versions[-1]],
            "pods": [tree_of("Pod", "web", owner=LONG_NAME, status={"phase": "Pending"})],
        },
        changes=[*changes_to("Deployment", LONG_NAME, *versions), *later],
    )
    path = tmp_path / "busy.html"
    path.write_text(page_of(found))
    return path


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_texts_of_states_are_where_no_write_is(busy_report, viewport):
    async with opened_file(busy_report, viewport=viewport) as page:
        await page.tab.evaluate(RECORD_DRAWING)
        await page.go("#/timeline")
        await page.tab.evaluate(DRAWN, "1/3")
        drawn, collisions = await page.tab.evaluate(COLLISIONS, ["1/3"])
        assert drawn
        assert not collisions


async def test_names_are_whole_on_a_phone(busy_report):
    async with opened_file(busy_report, viewport=NARROW) as page:
        assert await page.tab.get_by_role("navigation", name="Views").evaluate(
            "each => each.scrollWidth <= each.clientWidth"
        )
        await page.go("#/objects")
        name = page.tab.get_by_role("treeitem").filter(has_text=LONG_NAME).locator(".name")
        assert await name.first.evaluate(
            "each => each.scrollWidth <= each.clientWidth && each.scrollHeight <= each.clientHeight"
        )
        await page.tab.evaluate(RECORD_DRAWING)
        await page.go("#/timeline")
        await page.tab.evaluate(DRAWN, LONG_NAME)


@pytest.mark.parametrize(("viewport", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow"])
async def test_hostile_values_run_nothing_and_all_views_fit(report, viewport, scheme):
    async with opened_file(report, viewport=viewport, scheme=scheme) as page:
        fragments = [f"#/{view}" for view in VIEWS]
        fragments += [
            f"#/objects?select=pods|default|large&tab={tab}" for tab in ("overview", "yaml", "changes", "why")
        ]
        for fragment in fragments:
            await page.go(fragment)
            await page.tab.wait_for_timeout(200)
            assert await page.fits(), fragment
        await page.text("window.entered=1")
        assert await page.tab.evaluate("window.entered") is None
        assert await page.tab.locator("img[src=x]").count() == 0


@pytest.mark.parametrize(
    ("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)], ids=["light", "dark, narrow"]
)
async def test_report_violates_no_rule_of_axe(report, scheme, viewport):
    views = [f"#/{view}" for view in VIEWS]
    tabs = [
        f"#/objects?select=pods|default|large&tab={tab}" for tab in ("overview", "yaml", "changes", "why")
    ]
    async with opened_file(report, scheme=scheme, viewport=viewport) as page:
        assert await violations(page, [*views, *tabs]) == {}


async def test_keyboard_reaches_views_search_and_detail(report):
    async with opened_file(report) as page:
        keyboard = page.tab.keyboard
        await keyboard.press("2")
        await page.tab.get_by_role("tree").focus()
        for key in ("ArrowDown", "Enter"):
            await keyboard.press(key)
        await page.tab.get_by_role("complementary").wait_for()
        await keyboard.press("Escape")
        await page.tab.get_by_role("complementary").wait_for(state="detached")
        await keyboard.press("/")
        await keyboard.type("large")
        await page.tab.get_by_role("treeitem").filter(has_text="web").wait_for(state="detached")
        await keyboard.press("Enter")
        await page.tab.get_by_role("complementary", name="Pod large").wait_for()


async def test_summary_can_be_read_where_scripts_do_not_run(report):
    text = report.read_text().partition('<script type="application')[0]
    assert "alice (kubectl)" in text
    assert "no node has the label disk=ssd" in text


async def test_comparison_opens_the_object_of_the_run_in_whose_timeline_it_is_chosen(comparison):
    async with opened_file(comparison) as page:
        await page.text("finding 1: ")
        for name, value in (("Undisturbed", "replicas: 3"), ("Disturbed", "replicas: 0")):
            run = page.tab.get_by_role("region", name=name, exact=True)
            await run.get_by_role("application").focus()
            for key in ("Home", "ArrowDown", "Enter"):
                await page.tab.keyboard.press(key)
            detail = page.tab.get_by_role("complementary", name="Deployment web")
            await detail.get_by_role("tab", name="YAML").click()
            await detail.get_by_text(value).wait_for()
            await page.tab.keyboard.press("Escape")


async def test_comparison_has_the_whole_report_of_each_run(comparison):
    async with opened_file(comparison) as page:
        await page.go("#/summary")
        await page.text("1 objects, 0 not healthy")
        await page.tab.get_by_role("combobox", name="Run").select_option("Disturbed")
        await page.text("no node has the label disk=ssd")
        await page.tab.get_by_role("combobox", name="Run").select_option("Undisturbed")
        await page.text("1 objects, 0 not healthy")


@pytest.mark.parametrize(
    ("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)], ids=["light", "dark, narrow"]
)
async def test_comparison_fits_and_violates_no_rule_of_axe(comparison, scheme, viewport):
    async with opened_file(comparison, scheme=scheme, viewport=viewport) as page:
        views = ["#/comparison", "#/comparison?run=1&select=pods|default|large", "#/summary?run=1"]
        assert await violations(page, views) == {}
        for view in views:
            await page.go(view)
            assert await page.fits(), view
        assert await page.tab.evaluate("window.entered") is None
