"""Write docs/fidelity/*.md: what is the same as upstream, what differs and what is missing, from the YAML file of each area.

make fidelity
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import orjson
import yaml

from mockube.apimachinery.schema.minors import MINORS, RELEASES
from mockube.component_base.packs import own_pack_names
from mockube.controller_manager import catalog
from tools.packages import CODE, ROOT

FOLDER: Final = ROOT / "docs/fidelity"
INDEX: Final = "names"
"""The page that lists where names occur; no area has this name."""
INTRODUCTION: Final = """# Names

Where the pages of [fidelity](../fidelity.md) mention a flag, a kind, a field, an admission plugin, a controller, a metric or a
feature gate, and whether what they say of it is the same, different or missing. `make fidelity` generates this page."""

Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A\S(.*\S)?\Z")]
"""One line, as a cell of a table."""
Paragraphs: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S")]


class Entry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    subject: Text
    """What upstream does, in words that a reader would search for."""
    status: Literal["same", "different", "missing"]
    here: Text | None = None
    """How mockube does it; needed unless it does the same."""
    message: Text | None = None
    """The text by which the program refuses what is missing, with … for its variables, or a part of it."""
    since: str | None = None
    """The minor release since which upstream does it, if it is not the oldest that mockube serves."""
    tests: list[Text] = []
    evidence: Text | None = None
    """What the paths of the tests do not say: compared cases, conditions."""


class Section(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    title: Text
    upstream: Text | None = None
    """The program that `subject` describes, if it is not that of the area."""
    text: Paragraphs = ""
    generated: Literal["releases", "controllers"] | None = None
    entries: list[Entry] = []


class Area(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    title: Text
    upstream: Text = "upstream"
    text: Paragraphs = ""
    generated: Literal["recordings", "conformance-suite"] | None = None
    """A table whose data is elsewhere."""
    sections: list[Section] = []


class StrictLoader(yaml.SafeLoader):
    """A loader that refuses a key that occurs twice; PyYAML's would take the last one."""


def _mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    for key, count in Counter(key.value for key, _ in node.value).items():
        if count > 1:
            raise yaml.constructor.ConstructorError(None, None, f"{key} occurs twice", node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node)


StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_area(text: str) -> Area:
    return msgspec.convert(yaml.load(text, StrictLoader), Area)


def read_areas() -> dict[str, Area]:
    """Return the areas by the names of their files, in alphabetical order."""
    return {path.stem: read_area(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}


def problems(areas: dict[str, Area], source: str) -> Iterator[str]:
    """Yield what is wrong with the data beyond its types. `source` is the text of the program, without line breaks."""
    seen: dict[tuple[str, str], str] = {}
    for name, area in areas.items():
        titles = Counter(anchor(section.title) for section in area.sections)
        yield from (
            f"{name}: two sections have the anchor {title}" for title, count in titles.items() if count > 1
        )
        if not area.sections and not area.generated:
            yield f"{name}: nothing in it"
        for section in area.sections:
            if not section.entries and not section.generated:
                yield f"{name}: {section.title}: no entries"
            for entry in section.entries:
                place = f"{name}: {section.title}: {entry.subject}"
                key = (section.upstream or area.upstream, entry.subject)
                if key in seen:
                    yield f"{place}: also in {seen[key]}"
                seen[key] = f"{name}: {section.title}"
                yield from (f"{place}: {problem}" for problem in _problems_of(entry, source))


def _problems_of(entry: Entry, source: str) -> Iterator[str]:
    if entry.status != "same" and entry.here is None:
        yield "here: does not say how it differs"
    if entry.since is not None and entry.since not in MINORS:
        yield f"since: {entry.since} is no minor release"
    if entry.message is not None and entry.status == "same":
        yield "message: refuses what is the same"
    if entry.message is not None and any(part.strip() not in source for part in entry.message.split("…")):
        yield f"message: the program has no {entry.message!r}"
    yield from (f"tests: {test} occurs twice" for test, count in Counter(entry.tests).items() if count > 1)
    yield from (f"tests: {test} does not exist" for test in entry.tests if not _is_test(test))


def _is_test(test: str) -> bool:
    path, _, function = test.partition("::")
    place = ROOT / path
    if not path.startswith("tests/") or not place.exists():
        return False
    return not function or f"def {function}(" in place.read_text()


def program_text() -> str:
    """Return the source of the program, with literals that are broken over lines joined, and spaces for line breaks."""
    files = (path.read_text() for package in CODE for path in sorted((ROOT / package).rglob("*.py")))
    joined = re.sub(r"([\"'])\s*\n\s*f?\1", "", "\n".join(files))
    return " ".join(joined.split())


def pages() -> dict[Path, str]:
    areas = read_areas()
    found = {FOLDER / f"{name}.md": page(name, area) for name, area in areas.items()}
    return found | {FOLDER / f"{INDEX}.md": index(areas)}


def page(name: str, area: Area) -> str:
    parts = [
        f"# {area.title}",
        f"`make fidelity` generates this page from [{name}.yaml]({name}.yaml). [Fidelity](../fidelity.md) is the overview.",
        area.text.strip(),
        TABLES[area.generated]() if area.generated else "",
        *(part for section in area.sections for part in _section(section, area)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: Section, area: Area) -> Iterator[str]:
    yield f"## {section.title}"
    yield section.text.strip()
    if section.generated:
        yield TABLES[section.generated]()
    if section.entries:
        head = (section.upstream or area.upstream, "here", "tests")
        yield table(head, (_row(entry) for entry in section.entries))


def _row(entry: Entry) -> tuple[str, str, str]:
    since = f" (since {entry.since})" if entry.since else ""
    status, here = f"**{entry.status}**", entry.here or ""
    if entry.status == "same" and here.startswith("the same"):
        here = status + here.removeprefix("the same")
    elif here:
        here = f"{status}{';' if entry.status == 'same' else ':'} {here}"
    message = f" (`{entry.message}`)" if entry.message else ""
    tests = ", ".join(f"`{test}`" for test in entry.tests)
    return (
        f"{entry.subject}{since}",
        f"{here or status}{message}",
        "; ".join(part for part in (tests, entry.evidence) if part),
    )


def recordings() -> str:
    """Return how many recordings are equal, with the reasons for the others."""
    counts, differences = (
        orjson.loads((ROOT / f"tests/conformance/{name}.json").read_bytes())
        for name in ("counts", "differences")
    )
    rows = []
    for name, count in counts.items():
        reasons = differences.get(name, {})
        equal = count - sum(map(len, reasons.values()))
        rows.append((name, f"{equal:,}", f"{count:,}", "; ".join(reasons)))
    return table(("recordings", "equal", "of", "reason for the differences"), rows, numbers=(1, 2))


def conformance_suite() -> str:
    """Return how many specs of each group pass."""
    folder = ROOT / "judges/e2e"
    passing = (folder / "passing.txt").read_text().splitlines()
    failing = yaml.safe_load((folder / "failing.yaml").read_text())
    groups = [
        Counter(spec.partition("]")[0].removeprefix("[") for spec in specs)
        for specs in (passing, [*passing, *(spec for listed in failing.values() for spec in listed)])
    ]
    rows = [(f"`{name}`", f"{groups[0][name]}", f"{count}") for name, count in sorted(groups[1].items())]
    return table(("specs", "pass", "of"), rows, numbers=(1, 2))


def releases() -> str:
    return table(("minor", "patch release"), RELEASES.items())


def controllers() -> str:
    """Return when each controller runs."""
    cases = (("by default", False), ("by default with simulated nodes", True))
    conditions = {
        name: next(
            (text for text, nodes in cases if catalog.runs_by_default(name, simulates=nodes)),
            "if `--controllers` names it",
        )
        for name in catalog.NAMES
    } | {
        name: f"by default with `--packs={pack}`"
        for pack in own_pack_names()
        for name in catalog.controllers_of_packs([pack], {}).names
    }
    return table(("controller", "runs"), [(f"`{name}`", conditions[name]) for name in sorted(conditions)])


TABLES: Final = {
    "recordings": recordings,
    "conformance-suite": conformance_suite,
    "releases": releases,
    "controllers": controllers,
}

_NAME: Final = re.compile(
    r"`(?P<code>[^` ]+)`"  # a flag, a field, a metric, a path
    r"|\b(?P<camel>[A-Z][a-z]*[A-Z][A-Za-z]+)\b"  # a kind, a plugin, a feature gate
    r"|\b(?P<controller>[a-z-]+-controller)\b"
)


def index(areas: dict[str, Area]) -> str:
    """Return the page that says where each flag, kind, plugin, controller, metric and feature gate is mentioned."""
    places: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, area in areas.items():
        for section in area.sections:
            link = f"[{section.title}]({name}.md#{anchor(section.title)})"
            for entry in section.entries:
                for word in names_in(entry.subject):
                    places[word][link].add(entry.status)
            others = " ".join(entry.here or "" for entry in section.entries)
            for word in names_in(others + (TABLES[section.generated]() if section.generated else "")):
                places[word][link].update()
    rows = [
        (f"`{word}`", "; ".join(_place(link, places[word][link]) for link in sorted(places[word])))
        for word in sorted(places, key=lambda word: (word.lstrip("-/.").lower(), word))
    ]
    return f"{INTRODUCTION}\n\n{table(('name', 'in'), rows)}\n"


def _place(link: str, statuses: Collection[str]) -> str:
    return f"{link}: {', '.join(sorted(statuses, reverse=True))}" if statuses else link


def names_in(text: str) -> set[str]:
    """Return the names in a text; paths of our files are none."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    found = {match["code"] or match["camel"] or match["controller"] for match in _NAME.finditer(text)}
    return {name for name in found if not name.endswith(".py") and re.match(r"[-/.]*[A-Za-z]", name)}


def anchor(title: str) -> str:
    """Return GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    rule = ["---:" if column in numbers else "---" for column in range(len(head))]
    return "\n".join(
        (
            _line(head),
            f"|{'|'.join(rule)}|",
            *(_line([cell.replace("|", "\\|") for cell in row]) for row in rows),
        )
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
