"""What an author of a controller uses: requests, informers, queues, leader election, Events.

A module belongs here if a component that reads and writes objects over HTTP needs it, whichever its objects are: a controller
of Kubernetes or of a pack, the scheduler, the kubelets. The modules of this folder send one request or read one stream;
`cache/` follows a resource, `queue/` gives keys to workers, `component_helpers/` answers questions about objects.
"""
