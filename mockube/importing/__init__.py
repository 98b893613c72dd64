"""Import of objects that `kubectl get -o yaml` printed from another cluster. A file belongs here if it reads, cleans, orders or creates them."""
