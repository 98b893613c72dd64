"""The folder of a key, and the caches of served resources."""

import pytest

from mockube.apiserver.storage.folders import Folders
from mockube.apiserver.storage.progress import CacheProgress


@pytest.fixture
def folders():
    folders = Folders(b"/registry/", CacheProgress())
    folders.claim(b"/registry/pods/")
    return folders


@pytest.mark.parametrize(
    ("key", "folder"),
    [
        (b"/registry/pods/default/web", b"/registry/pods/"),
        (b"/registry/services/specs/default/web", b"/registry/services/specs/"),
        (b"/registry/example.com/widgets/default/one", b"/registry/example.com/widgets/"),
        (b"/registry/podtemplates/default/one", b"/registry/podtemplates/default/"),
    ],
)
def test_folder_has_one_segment_if_it_is_claimed_and_two_otherwise(folders, key, folder):
    assert folders.of(key) == folder


def test_only_claimed_caches_are_those_of_served_resources(folders):
    other = folders.cache(b"/registry/example.com/widgets/")
    assert folders.cache(b"/registry/example.com/widgets/") is other
    assert folders.find(b"/registry/example.com/gadgets/") is None
    assert [cache.prefix for cache in folders.claimed_caches()] == [b"/registry/pods/"]
    assert [cache.prefix for cache in folders.caches()] == [*folders] == [b"/registry/pods/", other.prefix]


def test_history_of_a_new_cache_begins_at_the_present_revision():
    progress = CacheProgress()
    progress.advance(7)
    assert Folders(b"/registry/", progress).cache(b"/registry/a/b/").history.newest == 7
