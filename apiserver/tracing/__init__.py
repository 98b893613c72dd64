"""OpenTelemetry traces: spans, and their export to a collector. Upstream: k8s.io/component-base/tracing, and OpenTelemetry's SDK.

A module belongs here if it knows spans, and nothing of requests and objects: where spans begin and end is beside the code
that they measure. Without `--tracing-config-file`, only `spans` is imported, and no span exists.
"""
