"""Objects as YAML that users read."""

from collections.abc import Iterable

import yaml

from mockube.apimachinery.tree import ReadOnlyTree


def dump_documents(trees: Iterable[ReadOnlyTree]) -> str:
    """Return objects as documents of YAML, with the fields in their order."""
    text: str = yaml.dump_all(trees, Dumper=_Dumper, sort_keys=False, width=120)
    return text


class _Dumper(yaml.SafeDumper):
    """Repeats equal parts: aliases would be hard to read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
