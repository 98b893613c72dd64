"""OpenAPI documents are generated again only if their group version changes."""

from mockube.apiserver.openapi.documents import MAX_TEXTS, DocumentCache, EncodedDocument


class Maker:
    def __init__(self):
        self.made = []

    def __call__(self, folder):
        self.made.append(folder)
        return EncodedDocument(folder.encode(), f"hash of {folder}")


def test_hash_of_unchanged_group_is_cached():
    known, make, one, other = DocumentCache(), Maker(), object(), object()
    for custom_versions in ([one], [one], [other]):
        assert known.digest("apis/g/v1", custom_versions, make) == "hash of apis/g/v1"
    assert make.made == ["apis/g/v1", "apis/g/v1"]


def test_built_in_documents_are_encoded_once():
    known, make = DocumentCache(), Maker()
    for _ in range(2):
        known.digest("apis/apps/v1", (), make)
        known.text("apis/apps/v1", (), make)
    assert make.made == ["apis/apps/v1"]


def test_latest_documents_of_custom_kinds_are_cached():
    known, make = DocumentCache(), Maker()
    custom_versions = {f"apis/g{at}/v1": [object()] for at in range(MAX_TEXTS + 1)}
    for folder, given in custom_versions.items():
        known.digest(folder, given, make)
    make.made.clear()
    known.text(f"apis/g{MAX_TEXTS}/v1", custom_versions[f"apis/g{MAX_TEXTS}/v1"], make)
    assert make.made == []
    known.text("apis/g0/v1", custom_versions["apis/g0/v1"], make)
    assert make.made == ["apis/g0/v1"]


def test_documents_of_removed_groups_are_dropped():
    known, make, one = DocumentCache(), Maker(), object()
    known.digest("apis/g/v1", [one], make)
    known.remove_others(())
    known.digest("apis/g/v1", [one], make)
    assert len(make.made) == 2
