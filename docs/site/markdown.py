"""Markdown: plain text of comments as Markdown, and what is done to the code spans and links of a page."""

import os.path
import re

# A word of a comment that is set as code: a name with an underscore, also as a call or a pattern, and NULL.
WORD = re.compile(r"(?<![\w-])(?:[A-Za-z]\w*_\w*(?:\*|\(\))?|NULL|[a-z]\w*(?:\[k\]))(?!\w)")


def escape(text):
    """Text in which nothing is Markdown's."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def plain(text, link=lambda name: None):
    """A comment's text as Markdown; `link` gives the address of what a name means, if it has one."""
    out, end = [], 0
    for word in WORD.finditer(text):
        out += [escape(text[end : word.start()]), code(word[0], link(word[0].removesuffix("()")))]
        end = word.end()
    return "".join([*out, escape(text[end:])])


def code(text, address=None):
    """A code span, as a link if it has an address."""
    return f"[`{text}`]({address})" if address else f"`{text}`"


def block(language, text):
    """A block of code, behind a fence that does not occur in it."""
    longest = max(map(len, re.findall(r"^\s*(`{3,})", text, re.M)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def relative(address, page):
    """An address from the root of the book, as one from a page."""
    path, *anchor = address.split("#", 1)
    path = os.path.relpath(path, os.path.dirname(page) or ".") if path != page or not anchor else ""
    return "#".join([path, *anchor])


SPAN_OR_LINK = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`)(?P<text>(?:(?!\n\n).)+?)(?<!`)\2(?!`))|\]\((?P<target>[^)\s]+)\)|\n\n|[\[\]]", re.S
)


def rewrite(text, of_code, of_target):
    """A page with its links led elsewhere: `of_target(target)` is the new target of a link, `of_code(text)` the address that a
    code span is to lead to, or None. Blocks of code stay as they are, and so do the code spans of headings and links.
    """
    out, prose, fence = [], [], ""
    for line in [*text.splitlines(keepends=True), None]:
        mark = re.match(r"\s*(```+|~~~+)", line or "")
        heading = line and line.startswith("#")
        if (line is None or mark or fence or heading) and prose:
            out.append(of_prose("".join(prose), of_code, of_target))
            prose = []
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
        elif mark:
            fence = mark[1]
        elif heading:
            line = of_prose(line, lambda text: None, of_target)
        elif line:
            prose.append(line)
            continue
        out.append(line or "")
    return "".join(out)


def of_prose(text, of_code, of_target):
    depth = 0  # of brackets: what is in them may be the text of a link

    def changed(found):
        nonlocal depth
        if found["target"]:
            depth = max(depth - 1, 0)
            return f"]({of_target(found['target'])})"
        if found["code"]:
            address = None if depth else of_code(found["text"])
            return f"[{found['code']}]({address})" if address else found["code"]
        depth = {"[": depth + 1, "]": max(depth - 1, 0)}.get(found[0], 0)
        return found[0]

    return SPAN_OR_LINK.sub(changed, text)
