"""Documents are made again when a group and version changes, and not when others do."""

from mockube.apiserver.openapi.documents import MOST_TEXTS, KnownDocuments, Text


class Maker:
    def __init__(self):
        self.made = []

    def __call__(self, folder):
        self.made.append(folder)
        return Text(folder.encode(), f"hash of {folder}")


def test_the_hash_of_a_group_that_has_not_changed_is_known():
    known, make, one, other = KnownDocuments(), Maker(), object(), object()
    for customs in ([one], [one], [other]):
        assert known.digest("apis/g/v1", customs, make) == "hash of apis/g/v1"
    assert make.made == ["apis/g/v1", "apis/g/v1"]


def test_built_in_groups_are_written_once():
    known, make = KnownDocuments(), Maker()
    for _ in range(2):
        known.digest("apis/apps/v1", (), make)
        known.text("apis/apps/v1", (), make)
    assert make.made == ["apis/apps/v1"]


def test_the_last_texts_of_custom_kinds_are_kept():
    known, make = KnownDocuments(), Maker()
    customs = {f"apis/g{at}/v1": [object()] for at in range(MOST_TEXTS + 1)}
    for folder, given in customs.items():
        known.digest(folder, given, make)
    make.made.clear()
    known.text(f"apis/g{MOST_TEXTS}/v1", customs[f"apis/g{MOST_TEXTS}/v1"], make)
    assert make.made == []
    known.text("apis/g0/v1", customs["apis/g0/v1"], make)
    assert make.made == ["apis/g0/v1"]


def test_groups_that_are_gone_are_forgotten():
    known, make, one = KnownDocuments(), Maker(), object()
    known.digest("apis/g/v1", [one], make)
    known.keep(())
    known.digest("apis/g/v1", [one], make)
    assert len(make.made) == 2
