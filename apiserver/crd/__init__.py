"""Custom resources: what becomes of a CustomResourceDefinition.

A module belongs here if it makes something of a definition, or knows custom resources from built-in ones on behalf of
all who need not. The rules that definitions themselves must keep are in `validation/apiextensions/`.

    compile     a definition → a `Custom` for each version: a row of the catalog, and what goes with it
    types       its schema for patches and apply        columns    its tables
    prune, default, validate, lists                     what its schema makes of an object
    customs     all that are served                     faces      built-in and custom kinds behind the same doors
"""
