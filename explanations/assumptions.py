"""Pods that are ready by assumption: a program of theirs, or a probe, was not run. The kubelet says so in a condition."""

from collections.abc import Iterator, Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.pods import assumption_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_NOT_SIMULATED

from .commands import command
from .explanation import Evidence, Remedy


def assumed_text(pods: Sequence[ReadOnlyTree]) -> str:
    """Return what is added to a cause that says that pods are ready; "" if none of them is so by assumption."""
    assumed = [pod for pod in pods if assumption_of(pod)]
    if not assumed:
        return ""
    count = " by assumption" if len(pods) == 1 else f", {len(assumed)} of them by assumption"
    return f"{count}: {assumption_of(assumed[0])}"


def assumed_evidence(pods: Sequence[ReadOnlyTree]) -> Iterator[Evidence]:
    for pod in pods:
        if text := assumption_of(pod):
            yield Evidence(text=text, source=f"condition {CONDITION_NOT_SIMULATED} of pod/{meta.name(pod)}")


def assumed_remedies(pods: Sequence[ReadOnlyTree]) -> Iterator[Remedy]:
    """Yield what would make the state of pods known, for the first one that is ready by assumption."""
    pod = next(filter(assumption_of, pods), None)
    if pod is None:
        return
    image = next((each["image"] for each in pod["spec"]["containers"] if each.get("image")), "")
    yield from image_remedies(image)


def image_remedies(image: str) -> Iterator[Remedy]:
    """Yield what would make known what containers of an image do."""
    yield Remedy(text="What is known of the image:", command=command("mockube", "images", "show", image))
    yield Remedy(
        text="Say in a file what the image does (docs/guides/images.md), and add it:",
        command=command("mockube", "images", "add", "FILE"),
    )
    yield Remedy(text="Or run the program itself as a process of this machine: docs/guides/processes.md.")
