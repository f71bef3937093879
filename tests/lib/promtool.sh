# Sourced, after packages.sh: promtool_need BUILD exports PN_PROMTOOL, the
# system's or that of Debian's package prometheus, unpacked beside BUILD: to
# install it would start a server.
promtool_need() {
    local into=$1/../unpacked
    PN_PROMTOOL=${PN_PROMTOOL:-$(command -v promtool || echo "$into/usr/bin/promtool")}
    export PN_PROMTOOL
    [ -x "$PN_PROMTOOL" ] || packages_unpack "$into" prometheus
}
