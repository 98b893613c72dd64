#!/bin/sh
# Whether the manifests are taken, come up, and keep what they promise. Given to `mockube run`.
set -eu
cd "$(dirname "$0")"

kubectl apply -f shop.yaml
kubectl rollout status deployment/web --namespace shop --timeout 60s

echo "a second apply must change nothing"
kubectl diff -f shop.yaml

echo "a node is drained, and the shop goes on"
node=$(kubectl get pods --namespace shop -o jsonpath='{.items[0].spec.nodeName}')
kubectl drain "$node" --ignore-daemonsets --timeout 60s >/dev/null
kubectl rollout status deployment/web --namespace shop --timeout 60s

echo "checked"
