"""`mockube ui` prints the URL of the page, and opens it in a browser."""

import pytest

from tests.support.processes.commands import Mockube


@pytest.fixture
def mockube(tmp_path):
    commands = Mockube(tmp_path)
    yield commands
    commands.close()


@pytest.mark.slow
def test_page_is_opened_by_url_with_token(mockube, tmp_path):
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    program.chmod(0o700)
    assert mockube.run("up", "--detach", "--name=page", "--simulate-nodes=0").returncode == 0
    printed = mockube.run("ui", "--name=page", "--no-open")
    assert printed.returncode == 0, printed.stderr
    assert "it works once" in printed.stderr
    assert not opened.exists()
    answer = mockube.run("ui", "--name=page", BROWSER=f"{program} %s")
    url = answer.stdout.strip()
    assert url.startswith(f"{mockube.record('page').url}/mockube/ui/#token=")
    assert opened.read_text().strip() == url
    assert url != printed.stdout.strip()
