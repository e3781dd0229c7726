#!/bin/sh
# Puts kubernetes-validate, which holds Kubernetes' own schemas, where kubernetes_schema.py looks for
# it, once; later runs return at once.
# Exit codes: 0 there; 77 python3-venv is missing (deploy/kubernetes is then not checked by the
# schemas); else pip failed.
set -eu

version=1.37.0
folder=${HAPAX_CACHE:-$HOME/.cache/hapax}/kubernetes-validate-$version

[ ! -e "$folder/ready" ] || exit 0
if ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
  echo 'get_kubernetes_validate: apt-get install python3-venv' >&2
  exit 77
fi

/usr/bin/python3 -m venv --clear "$folder"
"$folder/bin/pip" -q --disable-pip-version-check install "kubernetes-validate==$version" >&2
touch "$folder/ready"
