"""Rule: modules do not import each other in a circle, also not for types only.

An import under TYPE_CHECKING counts: it does not delay the start, but whoever reads one module of the circle needs all of them.
"""

from collections.abc import Iterable, Mapping


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or by others: Tarjan's strongly connected components."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        path.append(module)
        on_path.add(module)
        for imported in imports.get(module, ()):
            if imported not in numbers:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in on_path:
                lowest[module] = min(lowest[module], numbers[imported])
        if lowest[module] == numbers[module]:
            start = path.index(module)
            group = path[start:]
            del path[start:]
            on_path.difference_update(group)
            if len(group) > 1:
                found.append(sorted(group))

    for module in imports:
        if module not in numbers:
            visit(module)
    return found
