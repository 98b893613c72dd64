"""What the type says of a field that a strategic merge patch reaches into."""

from mockube.apimachinery import gotext
from mockube.apimachinery.patch.errors import Unmergeable
from mockube.apimachinery.schema.model import Shape, Type


def member_type(parent: Type, name: str) -> Type:
    """The type of a struct's field."""
    if parent.shape is Shape.MAP:
        raise Unmergeable("merging an object in json but data type is not struct, instead is: map")
    field = parent.fields.get(name)
    if field is None:
        struct = parent.go.rpartition(".")[2]
        raise Unmergeable(
            f"unable to find api field in struct {struct} for the json field {gotext.quote(name)}"
        )
    return field.type


def list_type(parent: Type, name: str) -> Type:
    """The type of a struct's field that has to be a list."""
    member = member_type(parent, name)
    if member.shape is not Shape.LIST:
        raise Unmergeable("expected slice or array type, but got: struct")
    if member.items.shape is Shape.LIST:
        raise Unmergeable("unexpected slice of slice")
    return member
