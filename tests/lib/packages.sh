# Sourced: installs the Debian packages that are missing, as root or by sudo.
#
#   packages_need PACKAGE...    returns 1 and names them when it cannot
#   packages_want PACKAGE...    the same, but says so and goes on
#   packages_unpack DIR PACKAGE...  what is in them, into DIR, without installing
#                   them: no service starts, and nobody needs to be root
#   packages_node               a node >= 18 with npm: the one that is there,
#                               else Debian's

packages_missing() {
    local p
    for p; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
            echo "$p"
    done
}

packages_apt() {
    local as_root=() r=0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as_root=(sudo -n)
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get
        -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold -qq -y)
    # A server for itself, not a cluster that the package makes and starts.
    local conf=/etc/postgresql-common/createcluster.conf made=
    if [[ " $* " == *" postgresql"* && ! -e $conf ]]; then
        "${as_root[@]}" mkdir -p "${conf%/*}"
        echo 'create_main_cluster = false' | "${as_root[@]}" tee "$conf" >/dev/null
        made=1
    fi
    "${apt[@]}" install --no-install-recommends "$@" >/dev/null 2>&1 </dev/null || {
        "${apt[@]}" update >/dev/null </dev/null || true
        "${apt[@]}" install --no-install-recommends "$@" >/dev/null </dev/null || r=1
    }
    [ -z "$made" ] || echo '#create_main_cluster = true' |
        "${as_root[@]}" tee "$conf" >/dev/null
    return $r
}

packages_need() {
    local missing
    command -v dpkg-query >/dev/null || return 0 # not Debian: trust the user
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing: ${missing[*]}"
    packages_apt "${missing[@]}" && return 0
    echo "cannot install; as root: apt-get install ${missing[*]}" >&2
    return 1
}

packages_want() {
    packages_need "$@" || echo "going on without: $*" >&2
}

packages_unpack() {
    local into=$1 dir p
    shift
    dir=$(mktemp -d)
    (
        cd "$dir" || exit 1
        apt-get -qq download "$@" >/dev/null 2>&1 </dev/null || {
            # The lists of packages may be old, or missing.
            if [ "$(id -u)" = 0 ]; then apt-get -qq update; else sudo -n apt-get -qq update; fi
            apt-get -qq download "$@" 2>&1 </dev/null
        } || exit 1
        mkdir -p "$into"
        for p in *.deb; do dpkg-deb -x "$p" "$into" || exit 1; done
    ) || { echo "cannot unpack: $*" >&2; rm -rf "$dir"; return 1; }
    rm -rf "$dir"
}

packages_node() {
    local major
    major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
    # Debian's npm conflicts with a Node from elsewhere: keep what is there.
    [ "${major:-0}" -ge 18 ] && command -v npm >/dev/null && return 0
    packages_need nodejs npm
}
