#!/bin/sh
# Installs the Debian packages that a purpose needs; does nothing, at once, where they are there.
#   install_packages.sh build|test|lint|fuzz|chaos|board|browser|package|site…
#     build  to build and run hapax, its demo included    test  its tests beside that
#     lint   what looks at the source only              fuzz  clang with its sanitizers and libFuzzer
#     chaos  what tests/chaos/run needs beside test    board  Prometheus, for the alerts and the board
#     browser  Chromium, in which a test opens the console
#     site   Sphinx, for scripts/docs_site.sh
#     package  what the Debian packages are built and looked at with, beside build
set -eu

build='g++ cmake ninja-build pkgconf ccache git ca-certificates nlohmann-json3-dev librdkafka-dev
  libpqxx-dev libpq-dev libssl-dev libspdlog-dev libcli11-dev prometheus-cpp-dev
  libcpp-httplib-dev libboost-dev libvalijson-dev libcurl4-openssl-dev libprotoc-dev
  postgresql'
test='libgtest-dev libgmock-dev python3 python3-yaml pgbouncer curl kcat wrk'
lint='clang clang-format clang-tidy python3-venv'
fuzz='clang libclang-rt-dev'
board='prometheus'
browser='chromium chromium-driver python3-selenium'
site='python3-myst-parser'
package='python3 dpkg-dev file gzip lintian man-db systemd zsh'
chaos='python3-confluent-kafka python3-psycopg2 libfaketime rsync'

wanted=''
for purpose in "$@"; do
  case $purpose in
    build) wanted="$wanted $build" ;;
    test)
      wanted="$wanted $test"
      # Any Java and Maven will do; whoever has their own keeps them.
      command -v java >/dev/null || wanted="$wanted default-jre-headless"
      command -v mvn >/dev/null || wanted="$wanted maven"
      ;;
    lint) wanted="$wanted $lint" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    chaos) wanted="$wanted $chaos" ;;
    board) wanted="$wanted $board" ;;
    browser) wanted="$wanted $browser" ;;
    package) wanted="$wanted $package" ;;
    site) wanted="$wanted $site" ;;
    *) echo "usage: $0 build|test|lint|fuzz|chaos|board|browser|package|site…" >&2; exit 2 ;;
  esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This is not Debian 12 or 13. Install what these packages hold, then build with CMake" >&2
  echo "(cmake --preset release && cmake --build --preset release):" $wanted >&2
  exit 1
fi

missing=''
for package in $wanted; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = 'install ok installed' ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=''
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Neither root nor sudo. As root: apt-get install$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
echo "installing:$missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
