"""The page of `mockube ui`, and reports, in a real browser, driven by Playwright."""

import contextlib
from urllib.parse import urlsplit

import pytest

from mockube import Cluster
from mockube.client.kubeconfig import read
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.control_objects import page_path
from tests.support.processes.browser import running_browser
from tests.support.server.control import PATH, control_object
from tools.browser import find_axe

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


class Page:
    """A tab; `problems` are errors of scripts, and what the policy of the page or its server refused."""

    def __init__(self, tab, url):
        self.tab, self.url = tab, url
        self.addresses, self.problems = set(), []
        tab.on("request", lambda request: self.addresses.add(urlsplit(request.url).netloc))
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("console", self._note)
        tab.on("dialog", lambda dialog: self.problems.append(dialog.message))

    def _note(self, message):
        # A browser reports the answers by which the page finds that nothing is explained, what budgets refuse, and that a server
        # without a manager knows no queues.
        path = urlsplit(message.location["url"]).path
        expected = path.endswith(("/explanations", "/eviction", "/controllers"))
        if message.type == "error" and not expected:
            self.problems.append(f"{message.text} {message.location['url']}")

    async def open(self, token):
        await self.tab.goto(f"{self.url}/mockube/ui/#token={token}")
        await self.tab.get_by_role("navigation", name="Views").wait_for()
        await self.loaded()

    async def loaded(self):
        await self.tab.get_by_text("Reading the objects").wait_for(state="detached")

    async def go(self, fragment):
        await self.tab.evaluate("fragment => { location.hash = fragment; }", fragment)

    async def text(self, expected):
        """Wait until a text is shown."""
        await self.tab.get_by_text(expected).first.wait_for()

    async def fits(self):
        """Return whether nothing is wider than the window."""
        return await self.tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


VIOLATIONS = """
async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" ")}`);
}
"""


async def violations(page, places):
    """Return the rules of axe that the page violates, by place; skip the test if axe is not installed."""
    script = find_axe()
    if script is None:
        pytest.skip("this test needs axe: `make browser` was not run")
    # The debugger adds it: the policy of the page lets no other script in.
    await page.tab.evaluate(script.read_text())
    found = {}
    for place in places:
        await page.go(place)
        await page.tab.get_by_role("region").first.wait_for()
        await page.tab.get_by_text("Reading").wait_for(state="detached")
        if problems := await page.tab.evaluate(VIOLATIONS):
            found[place] = problems
    return found


async def one_time_token(client):
    answer = await client.post(f"{PATH}/pagetokens", control_object("PageToken"))
    assert answer.status == 201, answer.body
    return answer.body["status"]["token"]


@contextlib.asynccontextmanager
async def opened_file(path, **options):
    """A report that is opened from its file; it fails if a script failed, or if anything was requested."""
    async with tab_of(f"file://{path}", **options) as page:
        await page.tab.goto(page.url)
        await page.tab.get_by_role("navigation", name="Views").wait_for()
        yield page
        assert page.problems == [], page.problems
        assert page.addresses == {""}


@contextlib.asynccontextmanager
async def visiting(client, **options):
    """A page of a server that is not open yet."""
    async with tab_of(client.url, **options) as page:
        yield page


@contextlib.asynccontextmanager
async def tab_of(url, *, viewport=WIDE, scheme="light"):
    async with running_browser() as running:
        context = await running.new_context(viewport=viewport, color_scheme=scheme, ignore_https_errors=True)
        context.set_default_timeout(60_000)
        yield Page(await context.new_page(), url)


@contextlib.asynccontextmanager
async def opened(client, **options):
    """A page with a session of the client's user; it fails if a script failed, or if another address was requested."""
    async with visiting(client, **options) as page:
        await page.open(await one_time_token(client))
        yield page
        assert page.problems == [], page.problems
        assert page.addresses == {urlsplit(client.url).netloc}


@contextlib.asynccontextmanager
async def opened_cluster(manifest, **options):
    """A cluster of two nodes with objects, and its page; it fails if a script failed."""
    async with Cluster(nodes=2) as cluster:
        await cluster.apply(manifest)
        async with open_client(read(cluster.kubeconfig), RealClock()) as client:
            path = await page_path(client)
        async with visiting(cluster, **options) as page:
            await page.open(path.partition("#token=")[2])
            yield cluster, page
            assert page.problems == [], page.problems
