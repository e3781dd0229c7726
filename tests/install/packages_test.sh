#!/bin/sh
# Makes the Debian packages of what is built, and looks at them: lintian, what they depend on and
# provide, the unit's hardening, and the man page and completions against --help. Exits 77 if a tool
# is missing (scripts/install_packages.sh package). scripts/packages.sh installs them on bare systems.
#   packages_test.sh <build folder> [folder that keeps the packages]
set -eu
build=$1
here=$(dirname "$0")
for tool in cpack dpkg-shlibdeps lintian man systemd-analyze; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

cpack --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "cpack"; }
[ $# -lt 2 ] || cp "$work"/*.deb "$2"
mv "$work"/hapax_*.deb "$work/hapax.deb"
mv "$work"/libhapax-dev_*.deb "$work/dev.deb"

# The maintainers' address is for a distributor to name.
lintian --fail-on warning,error --suppress-tags bogus-mail-host "$work/hapax.deb" "$work/dev.deb" ||
  fail "lintian"

abi=$(sed -n 's/^#define HAPAX_ABI //p' "$here/../../include/hapax/plugin.hpp")
field() { dpkg-deb -f "$work/$1.deb" "$2"; }
[ "$(field hapax Provides)" = "hapax-abi-$abi" ] || fail "it provides $(field hapax Provides)"
for library in libc6 libpq5 librdkafka1; do
  field hapax Depends | grep -q "$library (" || fail "it depends on $(field hapax Depends)"
done

dpkg-deb -x "$work/hapax.deb" "$work/root"
dpkg-deb -x "$work/dev.deb" "$work/root"
for file in bin/hapax share/man/man1/hapax.1.gz share/bash-completion/completions/hapax \
  share/zsh/vendor-completions/_hapax share/hapax/roles.sql share/hapax/hapax.schema.json \
  lib/systemd/system/hapax@.service include/hapax/testing.hpp share/doc/hapax/README.md; do
  [ -f "$work/root/usr/$file" ] || fail "$file is in no package"
done
for page in "$here"/../../docs/*.md; do
  [ -f "$work/root/usr/share/doc/hapax/docs/${page##*/}" ] || fail "$page is in no package"
done
[ ! -e "$work/root/usr/share/doc/hapax/docs/lab" ] || fail "the diary is in a package"
[ -z "$(find "$work/root" -name '*payments*')" ] || fail "the example is in a package"

unit=$work/hapax@.service
sed "s|/usr/bin/hapax|$work/root/usr/bin/hapax|" \
  "$work/root/usr/lib/systemd/system/hapax@.service" >"$unit"
said=$(systemd-analyze verify --man=no "$unit" 2>&1) && [ -z "$said" ] || fail "the unit: $said"
grep -qx LimitCORE=0 "$unit" || fail "a core of the unit would hold passwords"
systemd-analyze security --offline=true --no-pager --threshold=20 "$unit" >"$work/log" ||
  { cat "$work/log"; fail "the unit is too open"; }

docs=$work/docs
mkdir "$docs"
cp "$work/root/usr/share/man/man1/hapax.1.gz" "$work/root/usr/share/zsh/vendor-completions/_hapax" \
  "$docs"
cp "$work/root/usr/share/bash-completion/completions/hapax" "$docs/hapax.bash"
python3 -B "$here/command_docs_test.py" "$work/root/usr/bin/hapax" "$docs"
echo "packages of hapax $(field hapax Version): $(tail -n 1 "$work/log" | tr -d '→')"
