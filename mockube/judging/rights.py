"""Judgement 2: which rights did the operator lack, and which ones has it that it never used, in all other judgements?"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree

from .context import Context, NotApplicable
from .findings import Judgement, Level

_WORK: Final = ("drift", "deletions", "updates")
"""The judgements in which an operator has to do something else than to install its resource."""
Right = tuple[str, str, str, str]
"""The binding, the verb, the objects or the path, and the names."""


def judge(context: Context, judgement: Judgement) -> None:
    account = context.setup.account_of(context.setup.release)
    if account is None:
        raise NotApplicable(
            "the manifests have no workload with a service account, so the operator ran with all rights;"
            " --service-account=NAMESPACE/NAME names one"
        )
    if not context.advices:
        raise NotApplicable("no other judgement was made in which the operator ran")
    judgement.did += [
        f"Ran the operator as {account.user} in {len(context.advices)} clusters, of all judgements of this test.",
        "Asked each cluster by a RoleAdvice what was refused, and what the roles allow that was never used.",
        "A right counts as unused if no cluster has seen its use: paths of the code that no judgement reaches may need it.",
        "Rights for Events and finalizers are left out: admission may ask for these, and repeated Events for those.",
    ]
    judgement.by_hand = context.by_hand(
        f"mockube rbac --name=by-hand --user={account.user}",
        f"mockube rbac --name=by-hand --user={account.user} --unused",
    )
    refused = {right for advice in context.advices for right in refused_rights(advice)}
    for verb, objects, namespace in sorted(refused):
        place = f" in the namespace {namespace}" if namespace else ""
        judgement.add(
            "right-missing",
            Level.ERROR,
            f"{verb} {objects}{place}",
            "was refused: no role allows it",
            by_hand=[
                f"kubectl auth can-i {verb} {objects.partition(',')[0]} --as={account.user}{f' -n {namespace}' if namespace else ''}"
            ],
        )
    judgement.figures |= {
        "missing": str(len(refused)),
        "requests": str(sum(int(each["requests"]) for each in context.advices)),
    }
    if reason := _why_use_is_not_known(context):
        judgement.did.append(f"Unused rights are no findings here: {reason}.")
        judgement.figures["unused"] = "not judged"
    else:
        _add_unused(judgement, context.advices)


def _why_use_is_not_known(context: Context) -> str:
    """Return why an operator may need rights that it has not used, "" if it has done all that it is made for."""
    if context.reference is None or not context.reference.objects:
        return "the operator has not done its work, see `install`"
    if left_out := [f"`{name}`" for name in _WORK if name in context.left_out]:
        return f"it may need them in {' and '.join(left_out)}, which this test left out"
    return ""


def _add_unused(judgement: Judgement, advices: Sequence[ReadOnlyTree]) -> None:
    unused = common_unused([[*unused_rights(advice)] for advice in advices])
    for binding, verb, objects, names in sorted(unused, key=lambda right: (right[0], right[2:], right[1])):
        of_names = f" named {names}" if names else ""
        judgement.add(
            "right-unused",
            Level.WARNING,
            f"{verb} {objects}{of_names}",
            f"is allowed by {binding} and was never used",
        )
    for binding, rule in sorted({each for advice in advices for each in wildcards(advice)}):
        judgement.add("right-wildcard", Level.WARNING, rule, f"is allowed by {binding}: a wildcard")
    judgement.figures["unused"] = str(len(unused))


def refused_rights(advice: ReadOnlyTree) -> Iterator[tuple[str, str, str]]:
    for rule in advice.get("refused") or ():
        for verb in rule["verbs"]:
            for objects in _objects(rule):
                yield verb, objects, rule.get("namespace", "")


def unused_rights(advice: ReadOnlyTree) -> Iterator[Right]:
    for each in advice.get("unused") or ():
        for rule in each.get("rules") or ():
            for verb in rule["verbs"]:
                for objects in filter(_is_seen, _objects(rule)):
                    yield each["binding"], verb, objects, ",".join(rule.get("resourceNames") or ())


def _is_seen(objects: str) -> bool:
    """Return whether the use of a right would be seen: admission asks for finalizers, and Events are patched if they are repeated."""
    resource = objects.partition(".")[0]
    return resource != "events" and not resource.endswith("/finalizers")


def common_unused(found: Sequence[Sequence[Right]]) -> AbstractSet[Right]:
    """Return the rights that no trial has used."""
    first, *others = map(frozenset, found)
    return first.intersection(*others)


def wildcards(advice: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    for each in advice.get("unused") or ():
        for wildcard in each.get("wildcards") or ():
            rule: Mapping[str, Sequence[str]] = wildcard["rule"]
            yield each["binding"], f"{','.join(rule['verbs'])} {','.join(_objects(rule))}"


def _objects(rule: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if "nonResourceURLs" in rule:
        return rule["nonResourceURLs"]
    (group,) = rule["apiGroups"]
    return [f"{resource}.{group}" if group else resource for resource in rule["resources"]]
