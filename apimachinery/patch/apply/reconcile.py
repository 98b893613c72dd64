"""Sets of fields that were written when a type was different: what was owned in parts may have one owner now."""

from functools import lru_cache

from mockube.apimachinery.patch.apply import fieldsv1
from mockube.apimachinery.patch.apply.atoms import Atom, Scalar, child_atom
from mockube.apimachinery.patch.apply.fieldset import LEAF, SELF, FieldSet, is_leaf
from mockube.apimachinery.patch.apply.managers import OwnedFields


def reconcile_owned_fields(atom: Atom, owned: OwnedFields) -> OwnedFields:
    """What a manager owns, by the type as it is now."""
    changed = _changed_usual if len(owned.text) <= fieldsv1.MAX_LENGTH else _refit_text
    fields = changed(atom, owned.text) if owned.text else None
    return owned if fields is None else owned.with_fields(fields)


def _refit_text(atom: Atom, text: bytes) -> FieldSet | None:
    """The set by its type, or None if that is what it was."""
    before = fieldsv1.read(text).fields
    after = _refit(atom, before)
    return None if after is before else after


_changed_usual = lru_cache(fieldsv1.REMEMBERED)(_refit_text)


def _refit(atom: Atom | None, fields: FieldSet) -> FieldSet:
    changed = {}
    for element, node in fields.items():
        if element != SELF and not is_leaf(node):
            kind = child_atom(atom, element)
            is_atomic = kind is not None and not isinstance(kind, Scalar) and kind.atomic
            fitted = LEAF if is_atomic else _refit(kind, node)
            if fitted is not node:
                changed[element] = fitted
    return FieldSet({**fields, **changed}) if changed else fields
