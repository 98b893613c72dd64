"""Where the browser for tests of the page comes from."""

import pytest

from tools import browser


@pytest.fixture
def no_programs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))


def test_browser_of_the_machine_comes_first(monkeypatch, tmp_path):
    program = tmp_path / "chromium"
    program.touch(mode=0o755)
    (tmp_path / "launch").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.find_browser(tmp_path) == program


@pytest.mark.usefixtures("no_programs")
def test_installed_browser_is_found(tmp_path):
    assert browser.find_browser(tmp_path) is None
    (tmp_path / "launch").touch()
    assert browser.find_browser(tmp_path) == tmp_path / "launch"


@pytest.mark.usefixtures("no_programs")
def test_missing_npm_is_named(tmp_path):
    with pytest.raises(browser.NotInstalled, match="npm is not installed"):
        browser.install(tmp_path / "folder", needs_browser=False)


def test_other_processors_are_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.setattr(browser.platform, "machine", lambda: "aarch64")
    with pytest.raises(browser.NotInstalled, match="x86_64 alone"):
        browser.install(tmp_path, needs_browser=True)


@pytest.mark.usefixtures("no_programs")
def test_browser_that_does_not_run_is_not_found(monkeypatch, tmp_path):
    def run(*command):
        if command[0].endswith("launch.new"):
            raise browser.NotInstalled("it lacks a library")

    monkeypatch.setattr(browser, "_run", run)
    monkeypatch.setattr(browser, "_unpack", lambda _source, target: target.mkdir())
    monkeypatch.setattr(browser.platform, "system", lambda: "Linux")
    monkeypatch.setattr(browser.platform, "machine", lambda: "x86_64")
    with pytest.raises(browser.NotInstalled, match="it lacks a library"):
        browser.install(tmp_path, needs_browser=True)
    assert browser.find_browser(tmp_path) is None


@pytest.mark.usefixtures("no_programs")
def test_installed_axe_is_not_fetched_again(tmp_path):
    script = tmp_path / "node_modules/axe-core/axe.min.js"
    script.parent.mkdir(parents=True)
    script.touch()
    browser.install(tmp_path, needs_browser=False)
    assert browser.find_axe(tmp_path) == script
