"""Field sets in a readable notation."""

from mockube.apimachinery.patch.apply.fieldset import of_paths, paths, shown_path


def place(*steps):
    """Return the set of one path."""
    return of_paths([steps])


def field_paths(fields):
    """Return every path of a set, in order."""
    return [shown_path(path) for path in paths(fields)]
