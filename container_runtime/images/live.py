"""What users of a running cluster say of images: a ConfigMap, which the controller manager watches.

    kind: ConfigMap
    metadata: {name: mockube-images, namespace: kube-system}
    data:
      images.yaml: |      entries in the format of `--images`, as `mockube images add` writes them
        shop: {names: [example/shop], ports: {8080: {}}}
      loaded: |           the images that exist, as `mockube images load` writes them, one a line
        docker.io/library/shop:dev

Pure.
"""

import logging
from typing import Final

from mockube.apimachinery.images import InvalidImage
from mockube.apimachinery.tree import ReadOnlyTree

from .references import parse_reference
from .table import ImageTableError, LiveImages, read_table

LOG: Final = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "mockube-images"
TABLE: Final = "images.yaml"
LOADED: Final = "loaded"


def live_images(config_map: ReadOnlyTree | None) -> LiveImages:
    """Return what a ConfigMap says of images; what is invalid in it is logged, and left out."""
    data = (config_map or {}).get("data") or {}
    for other in sorted(data.keys() - {TABLE, LOADED}):
        LOG.warning("ConfigMap %s/%s: %s is not read", NAMESPACE, NAME, other)
    try:
        table = read_table(str(data.get(TABLE) or "").encode())
    except ImageTableError as error:
        LOG.warning("ConfigMap %s/%s: %s is ignored: %s", NAMESPACE, NAME, TABLE, error)
        table = {}
    loaded = set()
    for line in filter(None, map(str.strip, str(data.get(LOADED) or "").splitlines())):
        try:
            loaded.add(parse_reference(line).name)
        except InvalidImage as error:
            LOG.warning("ConfigMap %s/%s: %s: %s is ignored: %s", NAMESPACE, NAME, LOADED, line, error)
    return LiveImages(table, frozenset(loaded))
