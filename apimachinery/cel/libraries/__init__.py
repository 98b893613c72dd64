"""The libraries of functions that Kubernetes adds to the standard library.

A module belongs here if it declares and implements functions; their costs are in `cel/cost/`.
"""

from . import addresses, authorizer, formats, lists, optionals, quantities, regex, semver, sets, strings, urls

LIBRARIES = (
    optionals,
    strings,
    lists,
    sets,
    regex,
    urls,
    quantities,
    addresses,
    formats,
    semver,
    authorizer,
)
"""The libraries of all expressions."""
