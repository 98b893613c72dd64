"""What is done to the pods of a set, with the Events that tell of it."""

from collections.abc import Sequence

from controller_manager import kinds
from controller_manager.runtime.actions import Action, Create, Delete, Saying, Victim
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.stateful.setview import SetView


def creation(owner: SetView, bodies: Sequence[Tree]) -> tuple[Action, ...]:
    if not bodies:
        return ()
    return (Create(resource=kinds.PODS, bodies=tuple(bodies), saying=saying(owner, "create")),)


def deletion(owner: SetView, pods: Sequence[PodView]) -> tuple[Action, ...]:
    if not pods:
        return ()
    victims = tuple(Victim(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=kinds.PODS, victims=victims, saying=saying(owner, "delete")),)


def saying(owner: SetView, verb: str) -> Saying:
    subject = f"{verb} Pod {{name}} in StatefulSet {owner.key.name}"
    return Saying(
        about=owner.object,
        done=(f"Successful{verb.title()}", f"{subject} successful"),
        failed=(f"Failed{verb.title()}", f"{subject} failed error: {{error}}"),
    )
