#!/bin/sh
# Starts a cluster in the background, waits until its nodes are ready, and gives later steps its kubeconfig and its name.
set -eu
case " $MOCKUBE_FLAGS " in
*" --name"* | *" -n"*)
    echo "mockube: name the cluster by the input \`name\`, and not in \`flags\`" >&2
    exit 2
    ;;
esac
# The flags are separated by spaces.
# shellcheck disable=SC2086
set -- --detach "--nodes=$MOCKUBE_NODES" $MOCKUBE_FLAGS
if [ -n "$MOCKUBE_KUBERNETES_VERSION" ]; then set -- "$@" "--kubernetes-version=$MOCKUBE_KUBERNETES_VERSION"; fi
# Each command of mockube reads the name of its cluster from this variable.
if [ -n "$MOCKUBE_CLUSTER" ]; then export MOCKUBE_NAME="$MOCKUBE_CLUSTER"; fi
# They are variables of this script only: mockube reads such ones as flags.
unset MOCKUBE_NODES MOCKUBE_FLAGS MOCKUBE_KUBERNETES_VERSION MOCKUBE_CLUSTER
if ! mockube up "$@"; then
    "$(dirname "$0")/logs.sh"
    exit 1
fi
kubeconfig=$(mockube kubeconfig --path)
echo "KUBECONFIG=$kubeconfig" >>"$GITHUB_ENV"
if [ -n "${MOCKUBE_NAME:-}" ]; then echo "MOCKUBE_NAME=$MOCKUBE_NAME" >>"$GITHUB_ENV"; fi
echo "kubeconfig=$kubeconfig" >>"$GITHUB_OUTPUT"
