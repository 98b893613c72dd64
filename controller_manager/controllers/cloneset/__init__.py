"""OpenKruise's CloneSets: pods without identity, one as good as another, that are updated in place where it can be.

A module belongs here if it decides something for them; it reads caches and answers with plans. Upstream:
openkruise/kruise, pkg/controller/cloneset, release 1.9. What is left out is told in docs/fidelity.md.
"""
