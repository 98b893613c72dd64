"""Custom resources: what becomes of a CustomResourceDefinition.

A module belongs here if it makes something of a definition, or knows custom resources from built-in ones on behalf of
all who need not. The rules that definitions themselves must keep are in `validation/apiextensions/`.

    establishing  follows definitions: names, conditions, what is served        names      who gets which
    cleaning      their end, after that of their objects                        packs      those that come with mockube
    compile       a definition → a `Custom` for each version: a row of the catalog, and what goes with it
    schema        questions to a schema         prune, default, validate, values, lists    what it makes of an object
    types         it for patches and apply      columns, generations                       tables, and what a write counts
    catalog       all that is served            faces      built-in and custom kinds behind the same doors
"""
