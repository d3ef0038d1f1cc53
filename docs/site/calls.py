"""The pages of the calls: one for each function of the C interface, made from the headers, and pages about them.

A call has its declaration, what its comment says, its forms in the other languages as far as they can be derived, and what to see
besides. The predefined functions of reductions share a page for each operation, and have a heading each.
"""

import re
from dataclasses import dataclass, field

import fortran
import headers
import languages
import markdown
import rust
import same_names

REDUCTIONS = "Predefined functions of reductions"
PAPER = "The same by the paper's names"
SECOND = "Second names"
OVERVIEWS = {
    "fmpl.h": ("The calls of fmpl.h", "calls/index.md"),
    "acp.h": ("Global memory: acp.h", "calls/acp.md"),
}
KINDS = {"type": "Types", "error": "Error codes", "constant": "Constants"}
DIRECTIONS = {"in": "", "out": "&nbsp;*(out)*", "in,out": "&nbsp;*(in,&nbsp;out)*"}


@dataclass
class Page:
    title: str
    path: str
    text: str = ""
    below: list = field(default_factory=list)


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class Calls:
    def __init__(self, root):
        self.root = root
        self.fortran, self.fortran_reductions = fortran.read(root / "include/fmpl.f90")
        self.others = {
            ("Rust", "rust"): rust.Forms(root / "src"),
            ("C++", "cpp"): same_names.Cpp(root / "include"),
            ("Python", "python"): same_names.Python(root / "src/python/fmpl/__init__.pyi"),
        }
        self.headers = [headers.read(root / "include" / name) for name in OVERVIEWS]
        self.places = {  # the address of each name
            item.name: self.place(header, part, item) for header in self.headers for part in header.parts for item in part.items
        }

    def place(self, header, part, item):
        """Where an item is described, from the root of the book."""
        prefix = "acp-" if header.name == "acp.h" else ""
        if item.kind != "function":
            return f"calls/{prefix}{slug(KINDS[item.kind])}.md#{item.name.lower()}"
        if part.title.startswith(SECOND):
            return f"calls/second-names.md#{item.name}"
        if part.title.startswith(PAPER):
            return f"calls/paper-names.md#{item.name}"
        if operation := self.operation(part, item.name):
            return f"calls/reduction-{operation}.md#{item.name}"
        return f"calls/{item.name}.md"

    @staticmethod
    def operation(part, name):
        """The operation of a predefined function of reductions."""
        if not part.title.startswith("Predefined functions of"):
            return None
        return re.fullmatch(r"fmpl_(?:b?[iu]?(?:f?\d+)?|[isdcz])(" + "|".join(rust.OPERATIONS) + ")", name)[1]

    @staticmethod
    def is_for_all_types(part):
        """Is it a part of names that repeat: the functions of reductions for each type, second names, the paper's?"""
        return part.title.startswith(("Predefined functions of", PAPER, SECOND))

    def link(self, page, but=""):
        """A function that gives the address of a name, from a page; none of the name `but`, which the page is about."""

        def of(name):
            place = self.places.get(name) if name != but else None
            return markdown.relative(place, page) if place else None

        return of

    def named(self, page, name):
        return markdown.code(name, self.link(page)(name))

    # ---- Pages

    def pages(self, mentions):
        """An overview for each header, with the pages below it. `mentions(name)` are the places where other pages tell of a call: a
        title, and an address from the root of the book.
        """
        return [self.overview(header, mentions) for header in self.headers]

    def overview(self, header, mentions):
        title, path = OVERVIEWS[header.name]
        parts = self.tables_of_kinds(header)
        family = {}
        for part in header.parts:
            functions = [item for item in part.items if item.kind == "function"]
            if part.title.startswith("Predefined functions of"):
                for item in functions:
                    family.setdefault(self.operation(part, item.name), []).append((part, item))
            elif part.title.startswith(PAPER):
                parts.append(self.names_of_the_paper(part))
            elif part.title.startswith(SECOND):
                parts.append(self.second_names(part))
            elif functions:
                parts.append(self.part(part, functions, header, mentions))
            if part.title == REDUCTIONS:
                parts.append(reductions := self.reductions(part))
        if header.name == "fmpl.h":
            parts.append(self.by_language())
        if family:
            reductions.below = [self.family(operation, members, mentions) for operation, members in family.items()]
        text = f"# {title}\n\n" + self.prose(header.about, path)
        text += "\n| part | calls |\n|---|---|\n"
        for page in parts:
            calls = " ".join(f"[`{call.title}`]({markdown.relative(call.path, path)})" for call in page.below)
            text += f"| [{page.title}]({markdown.relative(page.path, path)}) | {calls} |\n"
        return Page(title, path, text, parts)

    def prose(self, paragraphs, path, but=""):
        return "\n\n".join(markdown.plain(text, self.link(path, but)) for text in paragraphs) + "\n"

    def tables_of_kinds(self, header):
        """The pages of types, error codes and constants, with a heading for each."""
        pages = []
        for kind, title in KINDS.items():
            items = [item for part in header.parts for item in part.items if item.kind == kind]
            if not items:
                continue
            path = self.places[items[0].name].split("#")[0]
            text = f"# {title} of {header.name}\n\n"
            for item in items:
                text += f"## {item.name}\n\n{markdown.block('c', item.code)}\n{self.prose(item.doc.paragraphs, path, item.name)}\n"
            pages.append(Page(title, path, text))
        return pages

    def part(self, part, functions, header, mentions):
        path = f"calls/{slug(part.title)}.md"
        text = f"# {part.title}\n\n{self.prose(part.note, path)}\n| call | what it does |\n|---|---|\n"
        for item in functions:
            text += f"| {self.named(path, item.name)} | {markdown.plain(first_sentence(item.doc), self.link(path))} |\n"
        below = [self.call(item, part, functions, header, mentions) for item in functions]
        return Page(part.title, path, text, below)

    def call(self, item, part, functions, header, mentions):
        """The page of one call."""
        path, name, doc = f"calls/{item.name}.md", item.name, item.doc
        link = self.link(path, name)
        text = f"# {name}\n\n" + markdown.block("c", f"#include <{header.name}>\n\n{item.code}")
        text += "\n" + self.prose(doc.paragraphs, path, name)
        if doc.parameters:
            text += heading("Parameters") + "| name | meaning |\n|---|---|\n"
            for direction, parameter, meaning in doc.parameters:
                text += f"| `{parameter}`{DIRECTIONS[direction]} | {markdown.plain(meaning, link)} |\n"
        if doc.returns:
            text += heading("Returns") + markdown.plain(capital(doc.returns), link) + "\n"
        if doc.source:
            text += heading("Source") + markdown.plain(doc.source, link) + "\n"
        text += self.in_fortran(item, path) + self.in_others(name)
        return Page(name, path, text + self.see_also(item, part, functions, path, mentions) + words(name))

    def in_fortran(self, item, path):
        form = self.fortran.get(item.name)
        if not form:
            return ""
        text = heading("Fortran") + markdown.block("fortran", form.code)
        said = " ".join(item.doc.paragraphs)
        if form.text.startswith(said) and form.text != said:
            text += f"\n{markdown.plain(capital(form.text.removeprefix(said).strip()), self.link(path, item.name))}\n"
        if form.longer:
            which = " and ".join(f"`{argument}`" for argument in form.lengths)
            text += f"\n{which} may also be `integer(c_int64_t)`; without the module (`fmplf.h`) that is `{form.longer}`.\n"
        known = {parameter for _, parameter, _ in item.doc.parameters}
        for parameter, meaning in form.parameters.items():
            if parameter not in known and parameter != "ier":
                text += f"\n- `{parameter}`: {markdown.plain(meaning, self.link(path, item.name))}"
        return text.rstrip() + "\n"

    def in_others(self, name):
        text = ""
        for (title, language), forms in self.others.items():
            if form := forms.of(name):
                text += heading(title) + f"`{form[0]}`\n" + ("\n" + markdown.block(language, form[1]) if form[1] else "")
        return text

    def see_also(self, item, part, functions, path, mentions):
        said = " ".join([*item.doc.paragraphs, item.doc.returns, *(meaning for _, _, meaning in item.doc.parameters)])
        named = re.findall(r"\b(?:fmpl|acp)_\w+", said)
        near = [other.name for other in functions]
        names = [name for name in dict.fromkeys([*near, *named]) if name in self.places and name != item.name]
        lines = [" · ".join(self.named(path, name) for name in names)] if names else []
        if f"p{item.name}" in self.places:
            second = self.named(path, f"p{item.name}")
            lines.append(f"The name behind which a tool that defines `{item.name}` goes on: {second}")
        told = [f"[{title}]({markdown.relative(address, path)})" for title, address in mentions(item.name)]
        if told:
            lines.append("Mentioned in: " + " · ".join(told))
        lines.append(f"All of [{part.title}]({slug(part.title)}.md)")
        return heading("See also") + "\n".join(f"- {line}" for line in lines) + "\n"

    def by_language(self):
        """The table of all calls."""
        path = "calls/by-language.md"
        text = "# Calls by language\n\nIn C++ all calls of C can be made; the table has what C++ has of its own. Where a call makes no sense in a\n"
        text += "language it says, in brackets, what does its work there. The predefined functions of reductions are not in it.\n\n| C | Fortran | Rust | C++ | Python |\n|---|---|---|---|---|\n"
        table = languages.Languages(self.root, self)
        short = lambda form: f"`{form.removeprefix('fmpl::').removeprefix('fmpl.')}`"
        for name, forms in table.rows():
            none = {k: f"({reason})" if (reason := table.reason(k, name)) else "–" for k in forms}
            others = [short(forms[k]) if forms[k] else none[k] for k in ("Rust", "C++", "Python")]
            fortran = "the same" if forms["Fortran"] else "–"
            text += f"| {self.named(path, name)} | {fortran} | {' | '.join(others)} |\n"
        return Page("Calls by language", path, text)

    # ---- Functions of reductions, other names

    def reductions(self, part):
        path = "calls/reduction-functions.md"
        text = f"# {part.title}\n\n{self.prose(part.note, path)}\n"
        text += "[Reductions](../reductions.md) is the page about them. Here each operation has one, with its functions of all types.\n"
        return Page(part.title, path, text)

    def family(self, operation, members, mentions):
        path = f"calls/reduction-{operation}.md"
        text = f"# Reduction: {operation}\n\n" + markdown.block(
            "c", "#include <fmpl.h>\n\n" + "\n".join(item.code for _, item in members)
        )
        text += "\nTo be passed to a collective call as its function. The names are the same in Fortran"
        missing = [item.name for _, item in members if item.name not in self.fortran_reductions]
        text += f", but for {', '.join(f'`{name}`' for name in missing)}" if missing else ""
        text += f"; in Rust the operation is `fmpl::{rust.OPERATIONS[operation]}`, for whatever the elements are.\n\n"
        for part, item in members:
            text += f"## {item.name}\n\n{self.prose(item.doc.paragraphs, path, item.name)}\n"
            text += "Where `long double` is that of the x87: on x86-64.\n\n" if part.condition else ""
            text += words(item.name) + "\n"
        told = {entry for _, item in members for entry in mentions(item.name)}
        lines = [f"[{title}]({markdown.relative(address, path)})" for title, address in sorted(told)]
        text += heading("See also") + " · ".join(["[All operations](reduction-functions.md)", *lines]) + "\n"
        return Page(operation, path, text)

    def names_of_the_paper(self, part):
        path = "calls/paper-names.md"
        text = f"# {PAPER}\n\nDeclared where `{part.condition}` is defined before `fmpl.h` is included.\n\n"
        for item in part.items:
            text += f"## {item.name}\n\n{markdown.block('c', item.code)}\n{self.prose(item.doc.paragraphs, path, item.name)}\n"
        return Page(PAPER, path, text)

    def second_names(self, part):
        path = "calls/second-names.md"
        text = f"# {part.title}\n\n{self.prose(part.note, path)}\n"
        text += "The guide has [an example](../guide.md#tools-that-watch-calls).\n\n| second name | declared as |\n|---|---|\n"
        for item in part.items:
            first = self.named(path, item.name.removeprefix("p"))
            text += f'| <a id="{item.name}"></a>`{item.name}` | {first} |\n'
        return Page(part.title, path, text)


def words(name):
    """What is not seen: the parts of a name, by which the search finds it too, for it knows whole words only."""
    short = re.sub("^(fmpl|acp)_", "", name)
    parts = short.split("_")
    return f"\n<span hidden>{' '.join(parts if len(parts) == 1 else [short, *parts])}</span>\n"


def heading(title):
    return f"\n#### {title}\n\n"


def capital(text):
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+\b(?!_)", text) else text


def first_sentence(doc):
    text = doc.paragraphs[0]
    found = re.match(r"(.*?[.:;])(?= [A-Z]|$)", text)
    return (found[1] if found else text).rstrip(":;")
