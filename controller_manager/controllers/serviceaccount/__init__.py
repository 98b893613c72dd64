"""The account `default` in every namespace. Upstream: pkg/controller/serviceaccount."""
