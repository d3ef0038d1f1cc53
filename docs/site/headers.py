"""Reads `include/fmpl.h` and `include/acp.h`: their parts, what they declare, and the comments that stand before it.

Not a parser of C. It knows the few shapes in which the tests of the interface write those files, and stops with a message at
anything else.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Doc:
    """A documentation comment, taken apart."""

    paragraphs: list = field(default_factory=list)
    parameters: list = field(default_factory=list)  # (direction, name, text)
    returns: str = ""
    source: str = ""


@dataclass
class Item:
    """What one declaration declares: a "function", a "type", a "constant" or an "error"."""

    kind: str
    name: str
    code: str
    doc: Doc


@dataclass
class Part:
    """What stands between two headings; what stands before the first has no title."""

    title: str
    items: list = field(default_factory=list)
    note: list = field(default_factory=list)  # paragraphs of a comment about all of them
    condition: str = ""  # the macro without which they are not declared


@dataclass
class Header:
    name: str
    about: list  # paragraphs
    parts: list


def paragraphs(lines):
    """Lines of a comment, one string for each paragraph."""
    return [" ".join(text.split()) for text in "\n".join(lines).split("\n\n") if text.strip()]


def take_apart(lines):
    """The lines of a documentation comment as a `Doc`. A tag goes on until the next."""
    text, tags = [], []
    for line in lines:
        if line.startswith("@"):
            tags.append(line)
        elif tags:
            tags[-1] += " " + line.strip()
        else:
            text.append(line)
    doc = Doc(paragraphs(text))
    for tag in tags:
        if found := re.fullmatch(r"@param\[([a-z,]+)\] (\w+) (.*)", tag):
            doc.parameters.append(found.groups())
        elif tag.startswith("@return "):
            doc.returns = tag.removeprefix("@return ").strip()
        elif tag.startswith("@see "):
            doc.source = tag.removeprefix("@see ").strip()
        elif not tag.startswith("@file "):
            raise ValueError(f"a tag that is not known: {tag}")
    return doc


def comment(first, lines):
    """The lines of the comment that begins with the line `first`."""
    lines_of_it = [first.strip()]
    while not lines_of_it[-1].endswith("*/"):
        lines_of_it.append(next(lines).strip())
    text = [re.sub(r"\s*\*/$", "", line) for line in lines_of_it]
    text[0] = re.sub(r"^/\*+\s*", "", text[0])
    return [text[0]] + [re.sub(r"^\*? ?", "", line) for line in text[1:]]


def read(path):
    """The header at this path."""
    lines = iter(path.read_text().splitlines())
    header, parts, doc = Header(path.name, [], []), [Part("")], None
    for line in lines:
        if title := re.match(r"/\* ---- (.*?) -+ \*/$", line):
            parts.append(Part(title[1]))
        elif line.startswith("/**"):
            text = comment(line, lines)
            doc = take_apart(text)
            if text[1:] and text[1].startswith("@file "):
                header.about, doc = paragraphs(text[2:]), None
        elif line.startswith("/*"):
            note = paragraphs(comment(line, lines))
            parts[-1].note += note if len(parts) > 1 else []  # before the first it is for those who change the file
        elif line.startswith("#ifdef ") and not line.endswith("__cplusplus"):
            parts[-1].condition = line.split()[1]
        elif found := re.match(r"#define (\w+) .", line):
            parts[-1].items.append(Item("constant", found[1], line, doc))
        elif line.startswith("enum "):
            parts[-1].items += errors(lines)
        elif line and line[0] not in "#}" and line != 'extern "C" {':
            parts[-1].items.append(declaration(line, lines, doc))
    if not header.about or not any(part.items for part in parts):
        raise ValueError(f"{path}: no comment about it all, or nothing declared")
    header.parts = parts
    return header


def errors(lines):
    """The entries of an enumeration whose first line has been read."""
    items, doc = [], None
    for line in lines:
        if line == "};":
            return items
        if line.strip().startswith("/**"):
            doc = take_apart(comment(line, lines))
        elif found := re.match(r"\s*(\w+) = \d+", line):
            items.append(Item("error", found[1], line.strip().rstrip(","), doc))
    raise ValueError("an enumeration without an end")


def declaration(line, lines, doc):
    """A type or a function, which ends with a semicolon outside all braces."""
    code = [line]
    while not code[-1].endswith(";") or "\n".join(code).count("{") > "\n".join(code).count("}"):
        code.append(next(lines))
    code = "\n".join(code)
    if code.startswith("typedef"):
        name = re.search(r"\(\*(\w+)\)|(\w+);$", code)
        return Item("type", name[1] or name[2], code, doc)
    name = re.match(r"[\w ]+?\**(\w+)\(", code)
    if not name:
        raise ValueError(f"neither a type nor a function: {code}")
    return Item("function", name[1], code, doc)
