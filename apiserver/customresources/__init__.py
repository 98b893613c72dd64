"""Custom resources: a CustomResourceDefinition becomes a kind at run time.

A module belongs here if it turns a definition into something that requests use. The validation of definitions themselves is in `kinds/apiextensions/`, that of values by a schema in `kinds/jsonschema/`.

    establishing  follows definitions: names, conditions, what is served        finalizing  deletes the objects, then the definition
    compile       a definition becomes a `Custom` for each version
    defaulting, list_types, scales, types    what a schema does to an object    columns, strategy   tables, and what a write changes
    catalog       all that is served            registries    built-in and custom kinds through the same interfaces
"""
