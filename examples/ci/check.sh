#!/bin/sh
# Check that the manifests are accepted, become available, and stay available while a node is drained. Run by `mockube run`.
set -eu
cd "$(dirname "$0")"

kubectl apply -f shop.yaml
kubectl rollout status deployment/web --namespace shop --timeout 60s

echo "checking that a second apply changes nothing"
kubectl diff -f shop.yaml

echo "draining a node"
node=$(kubectl get pods --namespace shop -o jsonpath='{.items[0].spec.nodeName}')
kubectl drain "$node" --ignore-daemonsets --timeout 60s >/dev/null
kubectl rollout status deployment/web --namespace shop --timeout 60s

echo "all checks passed"
