"""The Endpoints of every service that selects pods. Upstream: pkg/controller/endpoint."""
