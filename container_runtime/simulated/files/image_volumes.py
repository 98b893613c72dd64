"""The files of volumes that are made of an image, as far as the table of images knows them. Pure.

Upstream: KEP-4639; containerd mounts the image's files read-only.
"""

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.file_projection import Content, FileProjection
from mockube.container_runtime.images.programs import programs_of_image
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS

from .distributions import distribution_of


def image_volume_content(images: ImageTable, reference: str) -> Content:
    """Return the files of an image by their paths in the volume; none for one of which nothing is known."""
    image = images.behavior_of_image(reference)
    if image is None:
        return {}
    files = {path.lstrip("/"): FileProjection(text.encode(), 0o644) for path, text in image.files.items()}
    programs = programs_of_image(images, reference)
    if programs is None or is_artifact(images, reference):
        return files
    installed = {f"bin/{name}": FileProjection(b"", 0o755) for name in PROGRAMS if programs.has(name) is True}
    os_release = distribution_of(images, {"image": reference}).os_release
    if os_release:
        files["etc/os-release"] = FileProjection(os_release.encode(), 0o644)
    return {**installed, **files}


def is_artifact(images: ImageTable, reference: str) -> bool:
    """Return whether an image consists of the files in the table: one that has no programs."""
    image = images.behavior_of_image(reference)
    return image is not None and image.programs == ()


def is_whole_artifact(images: ImageTable, volume: ReadOnlyTree) -> bool:
    """Return whether all files of a volume are known, because it is made of an artifact."""
    return "image" in volume and is_artifact(images, (volume["image"] or {}).get("reference") or "")
