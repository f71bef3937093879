"""C source as the rules see it: text with comments and literals blanked out
(line numbers and columns stay), and the functions in it. A tokenizer of the
style the project is written in, not a compiler: definitions begin at depth 0
and macros do not hold unbalanced braces.
"""
import bisect
import re

_LEX = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<char>'(?:\\.|[^'\\\n])*')""",
    re.S | re.X)
_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else"}


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


def blank(text, strings=True):
    """text with comments (and what is inside literals) turned into spaces."""
    def one(m):
        if m.lastgroup == "comment":
            return _spaces(m.group())
        if not strings:
            return m.group()
        s = m.group()
        return s[0] + _spaces(s[1:-1]) + s[-1]
    return _LEX.sub(one, text)


def blank_directives(code):
    """Preprocessor lines, continued ones too, turned into spaces."""
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: _spaces(m.group()),
                  code)


class Function:
    """One definition: name, first line (of its name) and last line, body."""

    def __init__(self, name, first, last, body_at, body):
        self.name, self.first, self.last = name, first, last
        self.body_at, self.body = body_at, body

    @property
    def lines(self):
        return self.last - self.first + 1


class Source:
    """A C file: raw text, code (no comments, no literals), functions."""

    def __init__(self, text):
        self.text = text
        self.code = blank(text)
        self.plain = blank_directives(self.code)
        self._starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.functions = list(self._functions())

    def line(self, at):
        return bisect.bisect_right(self._starts, at)

    def _functions(self):
        code, depth, at = self.plain, 0, 0
        for m in re.finditer(r"[{}]", code):
            if m.group() == "{":
                if depth == 0:
                    at = m.start()
                depth += 1
            else:
                depth = max(0, depth - 1)
                if depth == 0:
                    f = self._function(at, m.end())
                    if f:
                        yield f

    def _function(self, open_at, end):
        head = self.plain[:open_at].rstrip()
        if not head.endswith(")"):
            return None
        depth = 0
        for i in range(len(head) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(head[i], 0)
            if depth == 0:
                break
        m = re.search(r"([A-Za-z_]\w*)\s*$", head[:i])
        if not m or m.group(1) in _KEYWORDS:
            return None
        return Function(m.group(1), self.line(m.start(1)), self.line(end - 1),
                        open_at, self.plain[open_at:end])

    def file_scope(self):
        """The code outside every brace: declarations of the file."""
        out, depth = [], 0
        for c in self.plain:
            if c == "{":
                depth += 1
            out.append(c if depth == 0 or c == "\n" else " ")
            if c == "}":
                depth = max(0, depth - 1)
        return "".join(out)
