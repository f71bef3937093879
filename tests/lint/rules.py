"""The rules of STYLE.md that a machine can check, besides layers.py. Each takes
the tree and yields (path, line, message).
"""
import collections
import re

import ctext
import layers

FUNCTION_LINES_MAX = 70
SOURCE_LINES_MAX = 500
HEADER_LINES_MAX = 200
# Files that are longer, with their length: they may only shrink.
RATCHET = {}

BANNED = """atoi atol atoll atof strtol strtoll strtoul strtoull strtod strtof
    sscanf strcpy strcat sprintf vsprintf strtok gets alloca system popen
    asctime ctime gmtime localtime rand srand""".split()
CLOCKS = "time clock_gettime gettimeofday".split()
RANDOM = "getrandom getentropy RAND_bytes random".split()
# Pure layers: no clock, no randomness, no log.
PURE = ("codec", "event", "provider")
PURE_BANNED = re.compile(r"\b(pn_clock_\w+|pn_random\w*|pn_log\w*)\s*\(")
MAY_LOG = "base http ingest store net deliver guard admin cmd".split()

# Asserts per function, measured; raise it, never lower it.
ASSERT_LAYERS = ("store", "ingest", "deliver")
ASSERT_FLOOR = 0.33


def _layer(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def function_length(tree):
    for path in tree.c_files("src", "include", "tests"):
        for f in tree.source(path).functions:
            if f.lines > FUNCTION_LINES_MAX:
                yield (path, f.first, f"{f.name} has {f.lines} lines,"
                       f" more than {FUNCTION_LINES_MAX}")


def file_length(tree):
    for path in tree.c_files("src", "include", "tests"):
        lines = tree.text(path).count("\n")
        limit = HEADER_LINES_MAX if path.endswith(".h") else SOURCE_LINES_MAX
        if lines > RATCHET.get(path, limit):
            yield path, 1, f"{lines} lines, more than {RATCHET.get(path, limit)}"
        elif path in RATCHET and lines <= limit:
            yield path, 1, "is short enough now: take it off the ratchet"


def _calls(source, names):
    return re.finditer(r"(?<![\w.>])(%s)\s*\(" % "|".join(names), source.code)


def banned_calls(tree):
    for path in tree.c_files("src", "include"):
        source, layer = tree.source(path), _layer(path)
        names = list(BANNED)
        if layer != "base":
            names += CLOCKS
        if layer not in ("base", "crypto"):
            names += RANDOM
        for m in _calls(source, names):
            yield path, source.line(m.start()), f"{m.group(1)} is banned"
    for path in tree.c_files("tests"):
        source = tree.source(path)
        for m in _calls(source, [n for n in BANNED if n not in
                                 ("system", "popen")]):
            yield path, source.line(m.start()), f"{m.group(1)} is banned"


def purity(tree):
    for path in tree.c_files("src"):
        source, layer = tree.source(path), _layer(path)
        if layer in PURE:
            for m in PURE_BANNED.finditer(source.code):
                yield (path, source.line(m.start()),
                       f"{m.group(1)} in {layer}, which is pure")
        for m in layers.INCLUDE.finditer(source.text):
            if m.group(2) == "paynotify/log.h" and layer not in MAY_LOG:
                yield (path, source.line(m.end()),
                       f"{layer} logs: libraries return, programs log")


def _is_mutable(declaration):
    before = re.split(r"[=\[;]", declaration)[0]
    if re.search(r"\bpthread_once_t\b", before):
        return False  # a library's one-time set-up
    # `static const struct { ... } rows[]`: what is before the brace decides.
    tail = before.split("{")[0].rsplit("*", 1)[-1]
    return not re.search(r"\bconst\b", tail)


def function_static(tree):
    """State that hides in a function is state that nobody can reset."""
    for path in tree.c_files("src", "include", "tests"):
        source = tree.source(path)
        for f in source.functions:
            for m in re.finditer(r"\bstatic\b([^;=]*)", f.body):
                if _is_mutable(m.group(1)):
                    yield (path, source.line(f.body_at + m.start()),
                           f"mutable static in {f.name}")


_GLOBAL = re.compile(
    r"(?m)^(?:static\s+)?(?!typedef|extern|return|static_assert|_Static_assert"
    r"|struct\s+\w+\s*;|enum\b|union\b)"
    r"(?P<decl>(?:[A-Za-z_][\w]*[\s*]+)+(?P<name>[A-Za-z_]\w*)"
    r"(?:\s*\[[^\]\n]*\])*\s*)(?P<end>[=;])")
# What may change while the program runs, and why.
GLOBALS = {
    "src/base/log.c": "the log level",
    "src/base/log_flood.c": "how many lines were held back",
    "src/base/metrics.c": "the counters",
    "src/base/series.c": "the counters that have labels",
    "src/crypto/library.c": "algorithms of OpenSSL, fetched once",
    "src/http/quiesce.c": "whether somebody stops accepting, for epoll_ctl()",
}


def mutable_global(tree):
    """One context struct is passed; only parsed arguments are global."""
    for path in tree.c_files("src"):
        source = tree.source(path)
        for m in _GLOBAL.finditer(source.file_scope()):
            if not _is_mutable(m.group("decl")) or path in GLOBALS:
                continue
            if m.group("name").startswith("arg_"):
                continue
            yield (path, source.line(m.start("name")),
                   f"mutable global {m.group('name')}")


def essay(tree):
    for path in tree.c_files("src", "include", "tests"):
        text = tree.text(path)
        end = text.find("*/")
        if not text.startswith("/*") or end < 0:
            yield path, 1, "does not open with a block comment"
        elif path.endswith(".c") and text.count("\n", 0, end) < 2:
            yield path, 1, "the opening comment is too short to say why"


def guard(tree):
    """A header is included once, under a name made of its own."""
    for path in tree.c_files("src", "include", "tests"):
        if path.endswith(".h"):
            m = re.search(r"(?m)^#ifndef (PN_\w+_H)\n#define (PN_\w+_H)$",
                          tree.text(path))
            if not m or m.group(1) != m.group(2):
                yield path, 1, "has no include guard PN_..._H"


_LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def later(tree):
    for path in tree.text_files():
        for n, line in enumerate(tree.text(path).split("\n"), 1):
            if _LATER.search(line):
                yield path, n, "work left for later belongs into an issue"


_PEM_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE" r" KEY-----"
                      r"(?:\\r|\\n|[\s\"\\])*[A-Za-z0-9+/=]{40}")
_DER_KEY = re.compile(r"MII[A-Za-z0-9+/]{1,3}(?:IBAAK|IBADANBgkqhkiG9w0BAQEFAASC)"
                      r"[A-Za-z0-9+/]{60}")


def private_key(tree):
    for path in tree.text_files():
        text = tree.text(path)
        for m in [*_PEM_KEY.finditer(text), *_DER_KEY.finditer(text)]:
            yield (path, text.count("\n", 0, m.start()) + 1,
                   "a private key: tests make theirs when they run")


_MACHINE = re.compile(r"(?<![\w.$}*-])/(?:ho" r"me|ro" r"ot|wo" r"rk|Us" r"ers)/\w")


def machine_path(tree):
    for path in tree.text_files():
        for n, line in enumerate(tree.text(path).split("\n"), 1):
            if _MACHINE.search(line):
                yield path, n, "an absolute path of one machine"


_TEST_NAME = re.compile(r"test_[a-z0-9]+(?:_[a-z0-9]+)*__[a-z0-9][a-z0-9_]*$")


def test_name(tree):
    """A test that is not registered never runs; a skipped one proves nothing."""
    # A group of tests may be split over files: it is registered somewhere.
    sources = [(p, tree.source(p)) for p in tree.c_files("tests")]
    listed = set()
    for _, source in sources:
        listed |= set(re.findall(r"\bcmocka_unit_test\w*\(\s*(\w+)", source.code))
    words = collections.Counter(
        w for _, s in sources for w in re.findall(r"\btest_\w+", s.code))
    for path, source in sources:
        for f in source.functions:
            if f.name in listed and not _TEST_NAME.match(f.name):
                yield path, f.first, f"{f.name} is not test_<module>__<behaviour>"
            if f.name.startswith("test_") and "__" in f.name and \
                    words[f.name] < 2:
                yield path, f.first, f"{f.name} is in no list of tests"
        for m in re.finditer(r"(?<![\w.>])skip\s*\(\s*\)", source.code):
            yield path, source.line(m.start()), "a skipped test"


def assert_ratio(tree):
    """Asserts per function where money depends on them: a floor."""
    asserts = functions = 0
    for path in tree.c_files("src"):
        if _layer(path) in ASSERT_LAYERS and path.endswith(".c"):
            source = tree.source(path)
            functions += len(source.functions)
            asserts += len(re.findall(r"\b(?:static_)?assert\s*\(", source.code))
    if not functions:
        return
    ratio = asserts / functions
    tree.note(f"asserts in {'/'.join(ASSERT_LAYERS)}: {asserts} in {functions}"
              f" functions, {ratio:.2f} each (floor {ASSERT_FLOOR:.2f})")
    if ratio < ASSERT_FLOOR:
        yield "src/store", 1, f"{ratio:.2f} asserts a function < {ASSERT_FLOOR}"


RULES = {
    "layers": layers.check,
    "layers-readme": layers.readme,
    "function-length": function_length,
    "file-length": file_length,
    "banned-calls": banned_calls,
    "purity": purity,
    "function-static": function_static,
    "mutable-global": mutable_global,
    "essay": essay,
    "guard": guard,
    "later": later,
    "private-key": private_key,
    "machine-path": machine_path,
    "test-name": test_name,
    "assert-ratio": assert_ratio,
}
__all__ = ["RULES", "ctext"]
