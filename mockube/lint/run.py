"""The check of all objects by all minors, one server after another."""

from collections.abc import Callable, Collection, Mapping, Sequence

from mockube.apimachinery.groups import GroupKind
from mockube.apiserver.packs.problems import packs_problem
from mockube.embedded.log_capture import capture_log
from mockube.failure import UsageError
from mockube.importing.cleaning import DEFINITION

from .check import CheckOptions, MinorCheck
from .findings import LintResult, ObjectFinding
from .inputs import InputReader, Inputs
from .minor_ranges import ALL
from .objects import LintObject
from .relations.rules import RelationOptions, find_problems
from .renderers import ChartOptions
from .server import SharedParts, run_server


async def check_all(
    inputs: Inputs, options: CheckOptions, on_step: Callable[[str], None] = lambda _: None
) -> Mapping[str, Sequence[LintResult]]:
    """Return the results of the objects of each minor, in their order; `on_step` is called with what is done next."""
    problem = packs_problem([name for name in options.packs.split(",") if name])
    if problem:
        raise UsageError(problem)
    shared = SharedParts.make()
    relations = _Relations(options)
    results = {}
    with capture_log():
        for minor, objects in inputs.items():
            on_step(f"checking against {minor}")
            async with run_server(minor, shared, options.packs) as server:
                checked = await MinorCheck(server, options, on_step).run(objects)
                problems = relations.find(objects, server.pack_kinds)
            results[minor] = [
                each.with_findings(problems.get(id(item), ()))
                for item, each in zip(objects, checked, strict=True)
            ]
    return results


class _Relations:
    """The problems between objects, which most minors share: only charts render other objects for some."""

    def __init__(self, options: CheckOptions) -> None:
        self._options = RelationOptions(
            namespace=options.namespace if options.is_namespace_given else "",
            release=options.release,
            disabled=options.disabled_rules,
        )
        self._found: dict[tuple[int, ...], Mapping[int, Sequence[ObjectFinding]]] = {}

    def find(
        self, objects: Sequence[LintObject], packs: Collection[GroupKind]
    ) -> Mapping[int, Sequence[ObjectFinding]]:
        key = tuple(map(id, objects))
        if key not in self._found:
            self._found[key] = find_problems(objects, self._options, packs)
        return self._found[key]


def read_definitions(names: Sequence[str]) -> Sequence[LintObject]:
    """Read the definitions of custom resources in files and folders; raise UsageError if there are none in them."""
    minor = ALL[-1]
    objects = InputReader([minor], ChartOptions()).read(names)[minor]
    definitions = [each for each in objects if each.group_kind == DEFINITION]
    if names and not definitions:
        raise UsageError(f"no CustomResourceDefinition in {', '.join(names)}")
    return definitions
