#!/usr/bin/env python3
"""Feeds every rule a small tree that breaks it, and one that does not: a rule
that cannot go red proves nothing. The bad text is put together here, so that
the rules do not find it in this file.
"""
import os
import sys
import tempfile

import lint
import rules

ESSAY = "/*\n * A file of the self-test:\n * what it is for.\n */\n"
BODY = "static int\nfirst(void)\n{\n%s\treturn 0;\n}\n"
CMOCKA = "static void\n%s(void **state)\n{\n\t(void)state;\n%s}\n"
TESTS = "static const struct CMUnitTest tests[] = { %s };\n"
HEADER = ESSAY + "#ifndef PN_X_H\n#define PN_X_H\n%s#endif\n"
KEY = "-----BEGIN " + "PRIVATE KEY-----\n" + "M" * 64 + "\n"


def inside(line):
    return ESSAY + BODY % f"\t{line}\n"


def test(name, listed, body=""):
    return ESSAY + CMOCKA % (name, body) + TESTS % f"cmocka_unit_test({listed})"


# rule, path, text that must be found, text that must not
CASES = [
    ("layers", "src/codec/a.c", ESSAY + '#include "paynotify/store.h"\n',
     ESSAY + '#include "paynotify/buf.h"\n'),
    ("layers", "src/codec/a.c", ESSAY + '#include "paynotify/nowhere.h"\n',
     ESSAY + '/* #include "paynotify/store.h" */\n'),
    ("layers", "src/http/a.c", ESSAY + "#include <libpq-fe.h>\n",
     ESSAY + "#include <microhttpd.h>\n"),
    ("layers", "src/base/a.c", ESSAY + "#include <gnutls/gnutls.h>\n",
     ESSAY + "#include <sys/socket.h>\n"),
    ("layers", "src/store/a.c", ESSAY + '#include "../http/b.h"\n', ESSAY),
    ("layers", "src/store/a.c", ESSAY + '#include "b.h"\n', ESSAY),
    ("layers", "src/new/a.c", ESSAY, None),
    ("layers", "include/paynotify/event.h",
     ESSAY + '#include "paynotify/store.h"\n',
     ESSAY + '#include "paynotify/digest.h"\n'),
    ("layers", "src/base/xml.c", ESSAY + '#include "paynotify/xml.h"\n', ESSAY),
    ("layers", "src/base/str.c",
     ESSAY + '#include <stdio.h>\n#include "paynotify/str.h"\n',
     ESSAY + '#include "paynotify/str.h"\n#include <stdio.h>\n'),
    ("layers-readme", "src/README.md", "| codec | x | base conf | jansson, libxml2, iconv |\n",
     "| codec | x | base | jansson, libxml2, iconv |\n"),
    ("layers-readme", "src/README.md", "| base | x | - | libc, OpenSSL |\n",
     "| base | x | - | libc, libsystemd |\n"),
    ("function-length", "src/base/a.c", ESSAY + BODY % ("\n" * 67),
     ESSAY + BODY % ("\n" * 66)),
    ("file-length", "src/base/a.c", ESSAY + "\n" * 500, ESSAY + "\n" * 490),
    ("file-length", "include/paynotify/str.h", HEADER % ("\n" * 200),
     HEADER % "\n"),
    ("banned-calls", "src/base/a.c", inside("return atoi(x);"),
     inside('f("atoi(x)"); /* atoi(x) */')),
    ("banned-calls", "src/base/a.c", inside("sprintf (x);"),
     inside("snprintf(x); p->system(x); my_system(x);")),
    ("banned-calls", "src/store/a.c", inside("t = time(NULL);"),
     inside("t = s.time(0); u = x_time(1);")),
    ("banned-calls", "src/store/a.c", inside("clock_gettime(a, b);"), None),
    ("banned-calls", "src/store/a.c", inside("getrandom(a, b, 0);"), None),
    ("banned-calls", "tests/unit/base/a.c", inside("strcpy(a, b);"), None),
    ("purity", "src/provider/a.c", inside("t = pn_clock_realtime_us();"),
     inside("t = now_us;")),
    ("purity", "src/event/a.c", ESSAY + '#include "paynotify/log.h"\n', ESSAY),
    ("function-static", "src/base/a.c", inside("static int calls;"),
     inside("static const int a[] = { 1 };")),
    ("function-static", "src/base/a.c", inside("static struct { int i; } a;"),
     inside("static const struct {\n\t\tint i;\n\t} a[] = { 1 };")),
    ("function-static", "src/base/a.c", inside("static const char *p = q;"),
     inside("static const char *const p = q;")),
    ("mutable-global", "src/base/a.c", ESSAY + "static int calls;\n",
     ESSAY + "static const int calls = 3;\nint f(void);\nstruct a;\n"),
    ("mutable-global", "src/base/a.c", ESSAY + "static pthread_mutex_t m;\n",
     ESSAY + "static pthread_once_t once = PTHREAD_ONCE_INIT;\n"),
    ("mutable-global", "src/base/a.c", ESSAY + "static const char *p = 0;\n",
     ESSAY + "static const char *const p[] = { 0 };\nstatic char *arg_c;\n"),
    ("essay", "src/base/a.c", "#include <stdio.h>\n" + ESSAY, ESSAY),
    ("essay", "src/base/a.c", "/* short */\n", None),
    ("guard", "include/paynotify/str.h", ESSAY, HEADER % "\n"),
    ("later", "sql/a.sql", "-- TO" + "DO: an index\n", "-- mktemp pn.XXXXXX\n"),
    ("private-key", "certs/a.pem", KEY, KEY[:40]),
    ("private-key", "src/base/a.c", 'x = "' + KEY.replace("\n", '\\n"\n"') + '"',
     None),
    ("private-key", "a.txt", "MIIEvQ" + "IBADANBgkqhkiG9w0BAQEFAASC" + "A" * 64,
     None),
    ("machine-path", "README.md", "see /ho" + "me/someone/x\n",
     "see $HOME/x, /var/lib, https://host/x/home/y\n"),
    ("test-name", "tests/unit/base/a.c", test("test_works", "test_works"),
     test("test_a__b", "test_a__b")),
    ("test-name", "tests/unit/base/a.c", test("test_a__b", "test_c__d"), None),
    ("test-name", "tests/unit/base/a.c",
     test("test_a__b", "test_a__b", "\tskip();\n"), None),
    ("assert-ratio", "src/store/a.c", inside(""), inside("assert(x);") ),
]


def red(rule, path, text):
    with tempfile.TemporaryDirectory() as root:
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        return bool(list(rules.RULES[rule](lint.Tree(root))))


def main():
    failed = 0
    for rule, path, bad, good in CASES:
        if not red(rule, path, bad):
            print(f"selftest: {rule} did not see {path}: {bad[-60:]!r}")
            failed += 1
        if good is not None and red(rule, path, good):
            print(f"selftest: {rule} is red for {path}: {good[-60:]!r}")
            failed += 1
    for rule in set(rules.RULES) - {c[0] for c in CASES}:
        print(f"selftest: rule {rule} has no case")
        failed += 1
    print(f"selftest: {len(CASES)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
