#!/bin/sh
# Puts a program of PyPI into a folder of its own in the cache, once; later runs return at once. Two
# tests need one: tests/check/kubernetes_schema.py Kubernetes' own schemas, Strangers.Schemathesis… a
# judge of the gate.
#   get_from_pypi.sh kubernetes-validate|schemathesis
# Exit codes: 0 there; 77 python3-venv is missing (the test is then skipped); else pip failed.
set -eu

case $1 in
  kubernetes-validate) version=1.37.0 ;;
  schemathesis) version=4.32.5 ;;
  *) echo "get_from_pypi: $1 is none of: kubernetes-validate, schemathesis" >&2; exit 2 ;;
esac
folder=${HAPAX_CACHE:-$HOME/.cache/hapax}/$1-$version

[ ! -e "$folder/ready" ] || exit 0
if ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then
  echo 'get_from_pypi: apt-get install python3-venv' >&2
  exit 77
fi

/usr/bin/python3 -m venv --clear "$folder"
"$folder/bin/pip" -q --disable-pip-version-check install "$1==$version" >&2
touch "$folder/ready"
