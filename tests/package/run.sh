#!/bin/bash
# The Debian package as an operator meets it: installed, set up, run, upgraded
# while it runs, removed, purged.
#   tests/package/run.sh [BUILD_DIR]
# The machine itself stays as it is: everything happens in an overlay over /, in
# namespaces of mounts, network and processes that end with the test. So the
# packaged configuration can be run with its own ports. PostgreSQL is a private
# cluster outside (tests/lib/pg.sh). systemd does not run here: what the package's
# scripts ask of it is written down, and done by hand.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${1:-build/release}
if [ "$(id -u)" != 0 ]; then
    exec sudo -n "$PWD/tests/package/run.sh" "$build"
fi
. tests/lib/pg.sh
unshare --mount --net --pid --fork mount -t tmpfs none /tmp 2>/dev/null ||
    { echo "no namespaces here (unshare): left out"; exit 0; }

work=$(mktemp -d "${TMPDIR:-/tmp}/pn-pkg.XXXXXX")
finish() {
    pg_stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Made anew from what is built there.
rm -f "$build"/paynotifyd_*.deb
(cd "$build" && cpack >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
cp "$build"/paynotifyd_*.deb "$work/paynotifyd.deb"
# As README.md does without a package.
DESTDIR=$work/local cmake --install "$build" >"$work/install.log" 2>&1 ||
    { cat "$work/install.log"; exit 1; }
# The next version is the same with another number, and a program that differs.
dpkg-deb -R "$work/paynotifyd.deb" "$work/next"
version=$(dpkg-deb -f "$work/paynotifyd.deb" Version)
sed -i "s/^Version: .*/&.next/" "$work/next/DEBIAN/control"
sed -i '/usr\/sbin\/paynotifyd$/d' "$work/next/DEBIAN/md5sums"
printf ' ' >>"$work/next/usr/sbin/paynotifyd"
dpkg-deb -b --root-owner-group "$work/next" "$work/next.deb" >/dev/null

export PN_PG_CONF='fsync = off'
pg_start || exit 1
cp -r tests/package/inside.sh systemd src/cmd/ctl_commands.c "$work"
chmod 755 "$work"

# shellcheck disable=SC2016 # expanded by the shell in there
unshare --mount --net --pid --fork --kill-child bash -c '
    set -e
    work=$1
    mkdir "$work/layer"
    mount -t tmpfs none "$work/layer"
    mkdir "$work/layer/changed" "$work/layer/scratch" "$work/layer/root"
    mount -t overlay -o "lowerdir=/,upperdir=$work/layer/changed,workdir=$work/layer/scratch" \
        none "$work/layer/root"
    cd "$work/layer/root"
    mount -t proc none proc
    mount --rbind /dev dev
    mount -t tmpfs none run
    mount --rbind /tmp tmp
    chroot . bash "$work/inside.sh" "$@"
' bash "$work" "$version" "$PN_DSN"
