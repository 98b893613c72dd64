"""Expressions of the Common Expression Language, as kube-apiserver compiles and evaluates them.

Compile once, evaluate often:

    environment = Environment({"object": types.DYN, "request": request_type}, structs)
    compiled = environment.compile("object.spec.replicas <= 5")    # raises Issues; str(issues) is cel-go's text
    value, cost = compiled.program.evaluate({"object": tree, ...}) # raises CelError or CostExceeded

`compiled.type` is the type of the result. Decoded JSON is passed as a value without
conversion. A module belongs here if it compiles or evaluates expressions, and does not depend on requests or on kinds.
"""
