"""The CloneSet controller of OpenKruise: interchangeable pods, which are updated in place where possible.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
openkruise/kruise, pkg/controller/cloneset, release 1.9. docs/fidelity/openkruise.md lists what is left out.
"""
