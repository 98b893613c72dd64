"""The controller that checks the types of expressions in ValidatingAdmissionPolicies.

A module belongs here if it checks expressions, or finds the types. Upstream:
pkg/controller/validatingadmissionpolicystatus.
"""
