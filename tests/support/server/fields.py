"""Sets of fields as people write them."""

from mockube.apimachinery.patch.apply.fieldset import of_paths, paths, shown_path


def place(*steps):
    """The set of one place."""
    return of_paths([steps])


def field_paths(fields):
    """Every place of a set, in order."""
    return [shown_path(path) for path in paths(fields)]
