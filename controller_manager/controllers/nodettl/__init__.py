"""How long kubelets may keep what they have read of Secrets and ConfigMaps, by the number of nodes."""
