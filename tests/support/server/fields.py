"""Field sets in a readable notation."""

from mockube.apiserver.patch.apply.fieldset import format_path, of_paths, paths


def place(*steps):
    """Return the set of one path."""
    return of_paths([steps])


def field_paths(fields):
    """Return every path of a set, in order."""
    return [format_path(path) for path in paths(fields)]
