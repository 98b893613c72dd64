"""The usage of ResourceQuotas, counted from the present objects.

A module belongs here if it counts, or decides when to count again. `mockube.apimachinery.quota` has an object's usage;
the API server charges new objects itself. Upstream: pkg/controller/resourcequota.
"""
