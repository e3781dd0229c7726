# Sourced by the scripts that need a bare Debian: makes one with debootstrap, and runs commands in it.
#
# Each system runs in namespaces of its own: with them its mounts and processes end, also where the
# script is killed. It gets the network's names, proxy and certificates from outside, but no
# compiler cache.
authorities=/usr/local/share/ca-certificates  # that an administrator here trusts besides
running='' made=''

refuse() {
  echo "$1" >&2
  exit 2
}
[ "$(id -u)" -eq 0 ] || refuse "Only root can make a system: sudo $0"
command -v debootstrap >/dev/null || refuse 'No debootstrap: apt-get install debootstrap'
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
  'Label: Debian' | head -n 1)
[ -n "$mirror" ] || refuse "apt knows no mirror of Debian: apt-get update"
[ -z "$(git status --porcelain)" ] || echo 'note: what is not committed is not tested' >&2

finish() {
  [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true
  [ -z "$running" ] || wait "$running" 2>/dev/null || true
  [ -z "$made" ] || rm -rf --one-file-system "$made"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# separately <command…>: in namespaces for mounts and processes, which end with it and with us.
separately() {
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$@" </dev/null &
  running=$!
  local code=0
  wait "$running" || code=$?
  running=''
  return "$code"
}

# inside <root> <command>: in the clone, by a shell of the system.
inside() {
  # shellcheck disable=SC2016  # for the shell in there
  separately sh -euc '
    mount -t proc proc "$1/proc"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
    mkdir -p "$1/dev/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
    exec env -i ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
      HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      chroot "$1" sh -c "cd /root/hapax && $2"' sh "$1" "$2"
}

make_system() {
  local root=$1 release=$2 options=--variant=minbase
  case $mirror in https:*) options+=' --include=ca-certificates' ;; esac
  [ -e "$root/root/.made" ] || {
    # shellcheck disable=SC2086  # words
    separately debootstrap $options "$release" "$root" "$mirror" && touch "$root/root/.made"
  } && cp /etc/resolv.conf "$root/etc/resolv.conf" && mkdir -p "$root$authorities" &&
    { [ ! -d "$authorities" ] || cp -rT "$authorities" "$root$authorities"; } &&
    rm -rf "$root/root/hapax" && git clone -q --no-hardlinks . "$root/root/hapax"
}
