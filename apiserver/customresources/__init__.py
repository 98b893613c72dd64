"""Custom resources: a CustomResourceDefinition becomes a kind at run time.

A module belongs here if it converts a definition to something that requests use. The validation of definitions is in
`kinds/apiextensions/`, and the validation of values by a schema is in `kinds/jsonschema/`.

    establishing   controller of definitions: names, conditions, serving
    finalizing     deletes the objects of a deleted definition, then the definition
    compile        compiles a definition into a `Custom` for each version
    defaulting, list_types, scales, types    functions of a schema on objects
    columns, strategy    tables, and the strategy of writes
    catalog        all served resources
    registries     built-in and custom kinds through the same interfaces
"""
