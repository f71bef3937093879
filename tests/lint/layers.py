"""The layer table of src/README.md: what a folder of src may include. A folder sees contracts of its own layer and of the layers
it may use, its own private headers, and the libraries it is given.
"""
import os
import re

# Contract header -> the layer that implements it.
CONTRACTS = {
    "base": "arena buf compiler encode error limits log metrics moment nearest parse rate request"
            " secret series service str",
    "codec": "capture charset form json xml",
    "crypto": "cipher digest key",
    "event": "event",
    "conf": "conf conf_change conf_option_doc conf_values",
    "provider": "provider",
    "store": "claims deliveries evidence guard_keys handoff migrate quarantine query stats store",
    "ingest": "ingest",
    "http": "server",
    "net": "client net",
    "deliver": "deliver",
    "guard": "guard",
    "admin": "admin render timeline",
}
OWNER = {name + ".h": layer for layer, names in CONTRACTS.items()
         for name in names.split()}

ALL = ("base codec crypto event conf provider store ingest http net deliver"
       " guard reconcile admin cmd").split()
# layer -> (layers it may use, libraries it may include)
TABLE = {
    "base": ("", "systemd"),
    "codec": ("base", "jansson libxml2 iconv"),
    "crypto": ("base", "openssl"),
    "event": ("base codec crypto", "jansson"),
    "conf": ("base", "inih"),
    "provider": ("base codec crypto event conf", "jansson"),
    "store": ("base event conf", "libpq"),
    "ingest": ("base event conf provider store", ""),
    "http": ("base conf net ingest", "microhttpd"),
    "net": ("base", "curl"),
    "deliver": ("base crypto event conf net store", ""),
    "guard": ("base codec crypto conf net store http", ""),
    "reconcile": ("base codec crypto event conf net provider store ingest", ""),
    "admin": ("base codec crypto conf store http", "jansson"),
    "cmd": (" ".join(ALL), "jansson libarchive systemd"),
}
NAMES = {"OpenSSL": "openssl", "libmicrohttpd": "microhttpd",
         "libcurl": "curl", "libsystemd": "systemd", "libc": None}
LIBRARIES = [
    (r"archive(_entry)?\.h", "libarchive"), (r"openssl/", "openssl"), (r"jansson\.h", "jansson"),
    (r"libxml/", "libxml2"), (r"iconv\.h", "iconv"), (r"ini\.h", "inih"),
    (r"libpq|postgres|pg_", "libpq"), (r"microhttpd", "microhttpd"),
    (r"curl/", "curl"), (r"systemd/", "systemd"),
]
LIBC = set("""assert ctype dirent dlfcn endian errno fcntl getopt glob grp inttypes
    langinfo limits locale malloc math netdb poll pthread pwd sched search semaphore signal spawn stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdio_ext stdlib string strings
    threads time unistd wchar wctype""".split())
LIBC_FOLDERS = ("sys/", "netinet/", "arpa/", "net/", "linux/")

INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')


def _contract(layer, name, uses):
    if name not in OWNER:
        return f"{name} is in no layer: add it to tests/lint/layers.py"
    owner = OWNER[name]
    if owner != layer and owner not in uses:
        return (f"layer {layer} includes paynotify/{name} of layer {owner},"
                f" may use: {' '.join(uses) or 'nothing'}")
    return None


def _system(layer, header, libraries):
    for pattern, library in LIBRARIES:
        if re.match(pattern, header):
            if library in libraries:
                return None
            return f"layer {layer} includes <{header}>: not its library"
    if header.removesuffix(".h") in LIBC or header.startswith(LIBC_FOLDERS):
        return None
    return f"<{header}> is neither libc nor a library of the table"


def _judge(tree, path, layer, kind, header):
    uses, libraries = (x.split() for x in TABLE[layer])
    if header.startswith("paynotify/"):
        return _contract(layer, header.removeprefix("paynotify/"), uses)
    if kind == "<":
        return _system(layer, header, libraries)
    if path.startswith("include/"):
        return f'"{header}": a contract includes contracts only'
    if "/" in header:
        return f'"{header}": private headers are of the same folder'
    # A header made by the build has a source of the same folder too.
    if not tree.has(os.path.join(os.path.dirname(path), header)):
        return f'"{header}" is not in this folder'
    return None


def _layer_of(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return OWNER.get(parts[-1])


def check(tree):
    for path in tree.c_files("src", "include"):
        layer = _layer_of(path)
        if layer not in TABLE:
            yield path, 1, "a file of no layer: see tests/lint/layers.py"
            continue
        source = tree.source(path)
        for m in INCLUDE.finditer(source.text):
            # Inside a comment it is prose; in code the "#" is still there.
            if "#" not in source.code[m.start():m.end()]:
                continue
            problem = _judge(tree, path, layer, m.group(1), m.group(2))
            if problem:
                yield path, source.line(m.end()), problem
        name = os.path.basename(path)[:-2] + ".h"
        if path.startswith("src/") and path.endswith(".c"):
            yield from _own_contract(source, path, layer, name)


def _own_contract(source, path, layer, name):
    """A file named like a contract is in its layer and includes it first."""
    if name not in OWNER or layer == "cmd":
        return
    first = INCLUDE.search(source.text)
    is_first = first is not None and first.group(2) == f"paynotify/{name}"
    if OWNER[name] != layer and is_first:
        yield path, 1, f"implements a contract of layer {OWNER[name]}"
    elif OWNER[name] == layer and not is_first:
        yield path, 1, f'does not include "paynotify/{name}" first'


def readme(tree):
    """The table that people read says what this one checks."""
    path, seen = "src/README.md", set()
    if not tree.has(path):
        return
    for n, line in enumerate(tree.text(path).split("\n"), 1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) != 4 or cells[0] not in TABLE:
            continue
        seen.add(cells[0])
        uses, libraries = (set(x.split()) for x in TABLE[cells[0]])
        told = {NAMES.get(x, x) for x in re.split(r"[ ,]+", cells[3])}
        if cells[2] != "all" and set(cells[2].split()) - {"-"} != uses:
            yield path, n, f"{cells[0]} may use: {' '.join(sorted(uses))}"
        if told - {None, "-"} != libraries:
            yield path, n, f"{cells[0]} has: {' '.join(sorted(libraries))}"
    folders = {f.split("/")[1] for f in tree.c_files("src") if f.count("/") > 1}
    for layer in sorted(folders - seen):
        yield path, 1, f"says nothing of src/{layer}"
