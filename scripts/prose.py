"""Finds the prose of Rust, Python and Markdown files, and wraps it. Used by scripts/words.py.

A piece is a run of comment lines, a docstring, a string or a Markdown file. Each of its lines has a number in
the file, a prefix (indentation and comment marker) and a text. Markdown rules hold inside every piece."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass

WIDTH = 110
# A code span is one word: spaces inside it are no places to break.
WORD = re.compile(r"(?:(`+)(?:(?!\1).)+?\1|\S)+")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?=\S)")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
# At the start of a line these would begin a list, a heading, a quotation, a table, a link's target or an HTML
# block.
OPENS_A_BLOCK = re.compile(r"[-*+=>|~:#]|#+$|\d+[.)]$|>|\||```|~~~|<[A-Za-z/!]|\[[^\]]*\]:|[-=_*]{2,}$|//")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PRAGMA = re.compile(r"\s*(noqa|type:|fmt:|pragma|pylint|pyright|mypy)")


@dataclass
class Line:
    number: int
    prefix: str
    text: str

    def whole(self):
        return (self.prefix + self.text).rstrip()


@dataclass
class Piece:
    kind: str  # "comment", "trailing" behind code, "pragma", "docstring", "string" or "markdown"
    lines: list


RUST = re.compile(
    r"""(?P<line>//[^\n]*)
    |(?P<block>/\*)
    |(?P<raw>\b[bc]?r(?P<hashes>\#*)"(?s:.*?)"(?P=hashes))
    |(?P<string>\b[bc]?"(?:\\.|[^"\\])*"|"(?:\\.|[^"\\])*")
    |(?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^\\'\n])')""",
    re.X | re.S,
)


def rust_tokens(text):
    """(kind, start, end) of comments, strings and characters."""
    at = 0
    while found := RUST.search(text, at):
        kind, at = found.lastgroup if found.lastgroup != "hashes" else "raw", found.end()
        if kind == "block":
            depth = 1
            while depth:
                edge = re.compile(r"/\*|\*/").search(text, at)
                depth, at = (depth + (1 if edge[0] == "/*" else -1), edge.end()) if edge else (0, len(text))
        yield kind, found.start(), at


def rust_pieces(text):
    pieces, comments = [], []
    starts = line_starts(text)
    for kind, start, end in rust_tokens(text):
        number = line_of(starts, start)
        before = text[starts[number - 1] : start]
        if kind == "line":
            marker = re.match(r"//(?:/(?!/)|!)? ?", text[start:end])[0]
            line = Line(number, before + marker, text[start + len(marker) : end])
            if before.strip():
                pieces.append(Piece("trailing", [line]))
            else:
                comments.append(line)
        elif kind in ("string", "raw"):
            # A backslash at the end of a line joins it to the next.
            content = text[start:end].split("\n")
            lines = [Line(number + i, "", re.sub(r"\\$|^\s*", "", part)) for i, part in enumerate(content)]
            pieces.append(Piece("string", lines))
    return pieces + in_groups(comments)


def in_groups(comments):
    """Comment lines that follow each other with the same prefix."""
    pieces = []
    for line in comments:
        same = pieces and pieces[-1].lines[-1].prefix.rstrip() == line.prefix.rstrip()
        if same and pieces[-1].lines[-1].number + 1 == line.number:
            pieces[-1].lines.append(line)
        else:
            pieces.append(Piece("comment", [line]))
    return pieces


def python_pieces(text, with_strings=False):
    pieces, comments = [], []
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, DOCUMENTED) and node.body and ast.get_docstring(node, clean=False) is not None
    }
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number, column = token.start
        before = token.line[:column] if token.type == tokenize.COMMENT else ""
        if token.type == tokenize.COMMENT:
            marker = re.match(r"#!?:? ?", token.string)[0]
            line = Line(number, before + marker, token.string[len(marker) :])
            if marker.startswith("#!") or PRAGMA.match(line.text):
                pieces.append(Piece("pragma", [line]))
            elif before.strip():
                pieces.append(Piece("trailing", [line]))
            else:
                comments.append(line)
        elif token.type == tokenize.STRING and number in docstrings and token.string.startswith('"""'):
            pieces.append(docstring(token.string, number, column))
        elif token.type == tokenize.STRING and (with_strings or number in docstrings):
            pieces.append(
                Piece("string", [Line(number + i, "", t) for i, t in enumerate(token.string.split("\n"))])
            )
    return pieces + in_groups(comments)


def docstring(token, number, column):
    """The first line has the quotes as its prefix, the others the indentation of the quotes."""
    lines = token.split("\n")
    indent, found = " " * column, [Line(number, " " * column + '"""', lines[0][3:])]
    for i, text in enumerate(lines[1:], 1):
        fits = text.startswith(indent)
        found.append(Line(number + i, indent if fits else "", text[column:] if fits else text))
    if lines[-1].strip() == '"""':
        found.pop()
    if "\\" in token:
        return Piece("string", found)
    return Piece("docstring", found)


def markdown_pieces(text):
    lines = [Line(i, "", line) for i, line in enumerate(text.split("\n"), 1)]
    return [Piece("markdown", lines)]


def pieces_of(path, text, with_strings=False):
    if path.suffix == ".rs":
        return rust_pieces(text)
    return python_pieces(text, with_strings) if path.suffix == ".py" else markdown_pieces(text)


def line_starts(text):
    return [0] + [m.end() for m in re.finditer("\n", text)]


def line_of(starts, position):
    low, high = 0, len(starts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if starts[middle] <= position else (low, middle)
    return low + 1


def blocks(piece):
    """(kind, lines): "code" is left as it is, "fixed" is prose that is not wrapped, "paragraph" is
    wrapped."""
    lines, at, after_blank = piece.lines, 0, True
    while at < len(lines):
        text = lines[at].text
        if fence := FENCE.match(text):
            end = at + 1
            while end < len(lines) and not lines[end].text.strip().startswith(fence[1]):
                end += 1
            yield "code", lines[at : end + 1]
            at, after_blank = end + 1, True
        elif after_blank and re.match(r" {4}", text) and not ITEM.match(text) or re.match(r"\s*>>> ", text):
            yield "code", lines[at : at + 1]
            at += 1
        elif is_fixed(text):
            yield "fixed", lines[at : at + 1]
            at, after_blank = at + 1, not text.strip()
        else:
            end = at + 1
            while end < len(lines) and continues(lines[end].text) and not breaks(lines[end - 1], lines[end]):
                end += 1
            yield ("paragraph" if is_even(lines[at:end]) else "fixed"), lines[at:end]
            at, after_blank = end, False


def is_fixed(text):
    text = text.strip()
    return not text or re.match(r"#{1,6} |\||<[A-Za-z/!]|>|\[[^\]]*\]:|[-=_*]{3,}$|\$\$", text) is not None


def continues(text):
    return not (is_fixed(text) or FENCE.match(text) or ITEM.match(text) or text.lstrip().startswith(">>> "))


def breaks(line, following):
    """Whether a line ends early on purpose."""
    width = len(line.whole()) + 1 + len(WORD.match(following.text.lstrip())[0])
    return (
        line.text.rstrip().endswith(":")
        and width < WIDTH - 10
        or line.text.rstrip().endswith((".", ";"))
        and width < 70
    )


def is_even(lines):
    """Whether lines are a paragraph: one indentation after the first line, no columns, no hard breaks."""
    indents = {len(line.text) - len(line.text.lstrip()) for line in lines[1:]}
    columns = any(re.search(r"\S {2,}\S", WORD.sub("x", body(line.text))) for line in lines)
    hard = any(line.text.endswith(("  ", "\\")) for line in lines)
    return len(indents) < 2 and not columns and not hard


def body(text):
    return ITEM.sub("", text, count=1).strip()


def is_long(line):
    return len(line.whole()) > WIDTH and len(WORD.findall(body(line.text))) > 1


def wrapped(kind, lines):
    """The paragraph's lines, filled up to the width."""
    if not any(map(is_long, lines)):
        return [line.whole() for line in lines]
    first, prefix = lines[0], lines[1].prefix if len(lines) > 1 else lines[0].prefix
    if kind == "docstring":
        prefix = prefix.replace('"', " ")[: len(prefix) - (3 if '"""' in prefix else 0)]
    item = ITEM.match(first.text)
    head = item[0] if item else re.match(r"\s*", first.text)[0]
    indent = re.match(r"\s*", lines[1].text)[0] if len(lines) > 1 else " " * len(head)
    words = [m[0] for line in lines for m in WORD.finditer(body(line.text) if line is first else line.text)]
    glued = []
    for word in words:
        if glued and OPENS_A_BLOCK.match(word):
            glued[-1] += " " + word
        else:
            glued.append(word)
    out, line = [], first.prefix + head + glued[0]
    for word in glued[1:]:
        if len(line) + 1 + len(word) > WIDTH:
            out.append(line)
            line = prefix + indent + word
        else:
            line += " " + word
    return out + [line]


def wrap(path, text):
    """The file's text with every paragraph of comments, docstrings and Markdown filled."""
    lines = text.split("\n")
    edits = []
    for piece in pieces_of(path, text):
        if piece.kind not in ("comment", "docstring", "markdown"):
            continue
        for kind, part in blocks(piece):
            if kind == "paragraph" and any(map(is_long, part)):
                edits.append((part[0].number, part[-1].number, wrapped(piece.kind, part)))
    for start, end, new in sorted(edits, reverse=True):
        lines[start - 1 : end] = new
    return "\n".join(lines)


def code_of(path, text):
    """What wrapping must not change: the code with its strings, and the words of the prose in their order."""
    if path.suffix == ".rs":
        return rust_code(text)
    if path.suffix == ".py":
        return python_code(text)
    fixed = [
        (kind, line.text)
        for kind, lines in blocks(*markdown_pieces(text))
        for line in lines
        if kind != "paragraph"
    ]
    return fixed, text.split()


def rust_code(text):
    code, words, at = [], [], 0
    for kind, start, end in rust_tokens(text):
        code += text[at:start].split()
        if kind in ("line", "block"):
            words += re.sub(r"^\s*//[/!]?", "", text[start:end]).split()
        else:
            code.append(text[start:end])
        at = end
    return code + text[at:].split(), words


def python_code(text):
    tree, words = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and node.body and ast.get_docstring(node, clean=False) is not None:
            constant = node.body[0].value
            words.append(constant.value.split())
            constant.value = ""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = " ".join(token.string.lstrip("#") for token in tokens if token.type == tokenize.COMMENT)
    return ast.dump(tree), words, comments.split()
