"""Objects that `kubectl get -o yaml` printed elsewhere, made to exist here. A file belongs here if it reads them, gets them ready, orders them or makes them."""
