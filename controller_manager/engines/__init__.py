"""Controllers that must ask the server while they decide: garbage, namespaces, accounts, nodes."""
