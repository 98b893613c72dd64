"""AppArmor profiles in annotations, as clients wrote them before there was a field: taken over into the field."""

from apimachinery import meta
from apiserver.resources.strategy import Request, Tree

PREFIX = "container.apparmor.security.beta.kubernetes.io/"
LOCALHOST = "localhost/"
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROFILES = {"unconfined": {"type": "Unconfined"}, "runtime/default": {"type": "RuntimeDefault"}}


def take_annotations(pod: Tree, request: Request) -> None:
    spec = pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    annotated = {
        name.removeprefix(PREFIX): value
        for name, value in meta.annotations(pod).items()
        if name.startswith(PREFIX)
    }
    if annotated:
        of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
        changed = {
            field: [_taken(container, annotated, of_pod, request) for container in spec[field]]
            for field in CONTAINERS
            if spec.get(field)
        }
        pod["spec"] = spec | changed


def _taken(container: Tree, annotated: dict[str, str], of_pod: Tree | None, request: Request) -> Tree:
    """A container with the profile that an annotation names for it; one that says what the pod says is not needed."""
    name = container.get("name", "")
    context = container.get("securityContext") or {}
    if name not in annotated or "appArmorProfile" in context:
        return container
    profile = profile_of(annotated[name])
    if profile is not None and profile == of_pod:
        return container
    request.warn(
        f'metadata.annotations[{PREFIX}{name}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    )
    if profile is None:
        return container
    return container | {"securityContext": context | {"appArmorProfile": profile}}


def profile_of(value: str) -> Tree | None:
    if value.startswith(LOCALHOST) and (local := value.removeprefix(LOCALHOST).strip()):
        return {"type": "Localhost", "localhostProfile": local}
    found = _PROFILES.get(value)
    return dict(found) if found else None
