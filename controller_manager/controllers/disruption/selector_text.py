"""A label selector as Go's `%v` prints it: one of upstream's messages holds it so."""

from apimachinery.meta import Tree


def selector_text(selector: Tree | None) -> str:
    if selector is None:
        return "nil"
    chosen = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    demands = "".join(map(_requirement, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{chosen}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{demands}}},}}"
    )


def _requirement(expression: Tree) -> str:
    values = " ".join(expression.get("values") or ())
    key, operator = expression["key"], expression["operator"]
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
