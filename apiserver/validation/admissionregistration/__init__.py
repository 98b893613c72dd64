"""Kinds of admissionregistration.k8s.io.

matching    which requests are meant      webhooks    configurations of webhooks
policies    admission policies and their bindings
"""
