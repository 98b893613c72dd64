"""OpenKruise's CloneSets: interchangeable pods without identity that are updated in place where possible.

A module belongs here if it decides something for them; it reads caches and returns plans. Upstream:
openkruise/kruise, pkg/controller/cloneset, release 1.9. docs/fidelity.md lists what is left out.
"""
