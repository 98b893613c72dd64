"""The file with the URLs of components, and with a token."""

import stat

from mockube.component_base.component_urls import read_component_urls, write_component_urls


def test_only_the_owner_may_read_the_file(tmp_path):
    file = tmp_path / "urls.json"
    file.touch(mode=0o644)
    for content in ({"a": "http://127.0.0.1:1"}, {"a": "http://127.0.0.1:2"}):
        write_component_urls(file, content)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert read_component_urls(file) == content
    assert [each.name for each in tmp_path.iterdir()] == ["urls.json"]
