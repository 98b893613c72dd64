"""The page of the guestbook of Kubernetes' tutorial in a real browser."""

import pytest
from playwright.sync_api import sync_playwright

from mockube import Cluster
from tests.support.guestbook import FLAGS, start_guestbook
from tests.support.processes.browser import browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_message_that_is_typed_appears_and_is_kept():
    program = browser()
    with Cluster(nodes=1, manager_flags=FLAGS) as cluster, sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = running.new_page()
        tab.goto(start_guestbook(cluster))
        tab.get_by_placeholder("Messages").fill("a & <b>")
        tab.get_by_role("button", name="Submit").click()
        tab.get_by_text("a & <b>").wait_for()
        tab.reload()
        tab.get_by_text("a & <b>").wait_for()
        running.close()
