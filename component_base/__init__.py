"""What every process needs: flags, the selection of a release, versions, logs, metrics' text, clocks, and supervised tasks.

A module belongs here if both processes need it to run, and it knows nothing of the API. Upstream: k8s.io/component-base.
"""
