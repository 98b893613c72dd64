"""Questions about pods, nodes, claims and volumes that controllers, the scheduler and kubelets ask alike.

Upstream's name: k8s.io/component-helpers. A module belongs here if it is a pure function of objects, or of views of them,
that more than one component needs. What concerns the owners of pods is in `controller_manager/workloads/`.
"""
