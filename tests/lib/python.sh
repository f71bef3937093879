# Sourced: finds a Python 3 that has a module.
#
#   pn_python MODULE    prints the program: the first python3 that can import
#                       it, which need not be the first one of PATH (Debian's
#                       packages are for /usr/bin/python3)

pn_python() {
    local p
    for p in python3 /usr/bin/python3; do
        if "$p" -c "import $1" 2>/dev/null; then
            echo "$p"
            return 0
        fi
    done
    echo "no python3 here can import $1 (Debian: python3-$1)" >&2
    return 1
}
