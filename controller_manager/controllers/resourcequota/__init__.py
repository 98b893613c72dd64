"""ResourceQuotas: how much of them is used, counted from what there is.

A module belongs here if it counts, or says when to count again. What an object uses is `mockube.apimachinery.quota`; the
API server charges new objects by itself. Upstream: pkg/controller/resourcequota.
"""
