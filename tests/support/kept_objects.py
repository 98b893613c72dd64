"""Where a text is reached from an object, as the uid of a pod that is removed."""

from collections import deque
from types import ModuleType
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

ATOMS = (str, bytes, int, float, complex, bool, type(None), type, ModuleType)


def places_of(root, texts, leaves_out=()):
    """Return where one of several texts is reached from an object, by its attributes, keys and members.

    What is in an object of a package whose name begins with one of `leaves_out` does not count.
    """
    seen, pending, found = {id(root)}, deque([(root, type(root).__name__)]), []
    while pending:
        value, place = pending.popleft()
        if isinstance(value, str) and value in texts:
            found.append(place)
        if isinstance(value, ATOMS) or type(value).__module__.startswith(tuple(leaves_out)):
            continue
        for name, inner in _parts(value):
            if id(inner) not in seen or isinstance(inner, str):
                seen.add(id(inner))
                pending.append((inner, f"{place}.{name}"))
    return found


def _parts(value):
    if isinstance(value, dict | WeakKeyDictionary | WeakValueDictionary):
        items = [*value.items()]  # at once: another thread may add some
        yield from ((f"key {key!r}", key) for key, _ in items)
        yield from items
    if isinstance(value, list | tuple | set | frozenset | deque | WeakSet):
        yield from enumerate([*value])
    if type(value).__module__.startswith("mockube."):
        yield from [*getattr(value, "__dict__", {}).items()]
        names = {name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())}
        yield from ((name, getattr(value, name)) for name in sorted(names) if hasattr(value, name))
