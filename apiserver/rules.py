"""What kinds demand of their objects beyond their schemas: defaults and validation, behind the verbs' one door."""

from apiserver.defaults.defaulter import Defaulter
from apiserver.validation import registry


class KindRules:
    def __init__(self, defaulter: Defaulter) -> None:
        self.default = defaulter.default_object
        self.check_create = registry.check_create
        self.check_update = registry.check_update
