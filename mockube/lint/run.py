"""The check of all objects by all minors, one server after another."""

from collections.abc import Callable, Mapping, Sequence

from mockube.apiserver.packs.problems import packs_problem
from mockube.embedded.log_capture import capture_log
from mockube.failure import UsageError
from mockube.importing.cleaning import DEFINITION

from .check import CheckOptions, MinorCheck
from .findings import LintResult
from .inputs import InputReader, Inputs
from .minor_ranges import ALL
from .objects import LintObject
from .renderers import ChartOptions
from .server import SharedParts, run_server


async def check_all(
    inputs: Inputs, options: CheckOptions, on_minor: Callable[[str], None] = lambda _: None
) -> Mapping[str, Sequence[LintResult]]:
    """Return the results of the objects of each minor, in their order; `on_minor` is called before each."""
    problem = packs_problem([name for name in options.packs.split(",") if name])
    if problem:
        raise UsageError(problem)
    shared = SharedParts.make()
    results = {}
    with capture_log():
        for minor, objects in inputs.items():
            on_minor(minor)
            async with run_server(minor, shared, options.packs) as server:
                results[minor] = await MinorCheck(server, options).run(objects)
    return results


def read_definitions(names: Sequence[str]) -> Sequence[LintObject]:
    """Read the definitions of custom resources in files and folders; raise UsageError if there are none in them."""
    minor = ALL[-1]
    objects = InputReader([minor], ChartOptions()).read(names)[minor]
    definitions = [each for each in objects if each.group_kind == DEFINITION]
    if names and not definitions:
        raise UsageError(f"no CustomResourceDefinition in {', '.join(names)}")
    return definitions
