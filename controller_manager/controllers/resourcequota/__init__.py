"""The controller of ResourceQuotas: it counts their usage from the present objects.

A module belongs here if it counts usage, or decides when to count again. `mockube.apimachinery.quota` has the usage of
one object; the API server adds the usage of new objects. Upstream: pkg/controller/resourcequota.
"""
