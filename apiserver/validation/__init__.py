"""What kube-apiserver refuses beyond what a schema can tell: its own rules of each kind, in its order and words.

A module belongs here if it holds the rules of one family of types, or what several families are checked with. Rules
see objects in normal form, with their defaults, and know neither requests nor the store: what depends on other
objects is admission's business, in `admission/`.

    registry    the rules of all kinds, and the two questions that verbs ask
    kind        what a kind has to say         rules        what rules are made of
    objectmeta  metadata, of every kind        labels       labels and selectors of them
"""
