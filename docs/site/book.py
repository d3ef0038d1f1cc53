#!/usr/bin/env python3
"""What mdBook calls before it writes the site (a preprocessor: a book comes in as JSON, and goes out).

- README.md becomes the first page.
- The pages of the calls are put in (`calls.py`), below the heading `CALLS` of SUMMARY.md.
- The files of the repository that pages point to become pages below the heading `FILES`, so that the site needs nothing else.
- In prose the name of a call, an error or a constant, set as code, leads to its page.
"""

import json
import pathlib
import posixpath
import re
import sys

import calls
import markdown

CALLS, FILES = "The C interface", "Files"
ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {
    ".rs": "rust", ".c": "c", ".h": "c", ".cc": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "bash", ".toml": "toml", ".json": "json",
}  # fmt: skip


def chapters(items):
    """All chapters of a list of items and below."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def chapter(page):
    """A page as an item of the book."""
    below = [chapter(each) for each in page.below]
    return {"Chapter": {"name": page.title, "content": page.text, "number": None, "sub_items": below, "path": page.path,
                        "source_path": None, "parent_names": []}}  # fmt: skip


class Book:
    def __init__(self, items):
        self.items = items
        self.calls = calls.Calls(ROOT)
        self.files = {}  # path in the repository: title
        self.mentions = {}  # name: places that tell of it

    def make(self):
        for page in chapters(self.items):
            if page["path"] == "../README.md":
                page["path"] = "index.md"
        prose = list(chapters(self.items))
        self.pages = {self.in_repository(page): page["path"] for page in prose}
        self.pages |= {f"include/{name}": path for name, (_, path) in calls.OVERVIEWS.items()}
        for page in prose:
            if page["path"] not in ("changelog.md", "notebook.md", "decisions.md"):
                self.note_mentions(page)
        for page in prose:
            here = page["path"]
            page["content"] = markdown.rewrite(
                page["content"], self.calls_of(here), lambda target, page=page: self.target(target, page)
            )
        self.put(CALLS, [chapter(page) for page in self.calls.pages(lambda name: self.mentions.get(name, []))])
        self.put(FILES, [chapter(self.page_of_files())])
        number(self.items)

    def put(self, heading, items):
        at = self.items.index({"PartTitle": heading}) + 1
        self.items[at:at] = items

    @staticmethod
    def in_repository(page):
        return "README.md" if page["path"] == "index.md" else "docs/" + page["path"]

    def note_mentions(self, page):
        """Which sections of a page name which calls."""
        section, anchor, fence = page["name"], "", False
        for line in page["content"].splitlines():
            fence ^= bool(re.match(r"\s*(```|~~~)", line))
            if (found := re.match(r"##+ (.*)", line)) and not fence:
                title = re.sub(r"[`*]", "", found[1])
                section, anchor = f"{page['name']}: {title}", "#" + identifier(title)
            for name in re.findall(r"`((?:fmpl|acp)_\w+)[`(]", line) if not fence else []:
                place = (section.replace("|", r"\|"), page["path"] + anchor)
                places = self.mentions.setdefault(name, [])
                if place not in places:
                    places.append(place)

    def calls_of(self, page):
        link = self.calls.link(page)

        def of(code):
            name = re.fullmatch(r"((?:fmpl|acp|FMPL|ACP)_\w+|pfmpl_\w+)(?:\([^`]*\))?", " ".join(code.split()))
            return link(name[1]) if name else None

        return of

    def target(self, target, page):
        """Where a link of a page leads in the book."""
        path, *anchor = target.split("#", 1)
        if re.match(r"[a-z]+:", target) or not path:
            return target
        here = page["path"]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.in_repository(page)), path))
        if path in self.pages:
            return markdown.relative("#".join([self.pages[path], *anchor]), here)
        if path.startswith("docs/") and path.endswith((".svg", ".png")):  # mdBook copies it
            return markdown.relative(path.removeprefix("docs/"), here)
        if not (ROOT / path).exists():
            raise ValueError(f"{self.in_repository(page)}: there is no {target}")
        return markdown.relative(self.file(path), here)

    # ---- Files of the repository

    def file(self, path):
        """The page of a file or a directory of the repository."""
        if path not in self.files:
            self.files[path] = f"files/{path}/index.md" if (ROOT / path).is_dir() else f"files/{path}.md"
            for below in sorted((ROOT / path).iterdir()) if (ROOT / path).is_dir() else []:
                if below.name != "__pycache__" and below.suffix not in (".o", ".mod", ".gz"):
                    self.file(str(below.relative_to(ROOT)))
        return self.files[path]

    def page_of_files(self):
        path = "files/index.md"
        text = "# Files of the repository\n\nThe files that the other pages point to.\n\n"
        pages = []
        for file in sorted(self.files):
            whole = ROOT / file
            page = calls.Page(file + "/" * whole.is_dir(), self.files[file], f"# {file}\n\n")
            if whole.is_dir():
                for below in sorted(name for name in self.files if posixpath.dirname(name) == file):
                    page.text += f"- [{posixpath.basename(below)}]({markdown.relative(self.files[below], page.path)})\n"
            else:
                page.text += markdown.block(language(whole), whole.read_text())
            text += f"- [{file}]({markdown.relative(page.path, path)})\n"
            pages.append(page)
        return calls.Page("Files of the repository", path, text, pages)


def language(path):
    if path.suffix:
        return LANGUAGES.get(path.suffix, "text")
    first = path.read_text().split("\n", 1)[0]
    return "python" if "python" in first else "bash" if first.startswith("#!") else "text"


def identifier(title):
    """The anchor of a heading, as mdBook and GitHub make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def number(items, above=()):
    """Numbers, by which mdBook knows what is below what, and the titles above each chapter, which the search shows."""

    def go(items, above, names):
        at = 0
        for item in items:
            if isinstance(item, dict) and "Chapter" in item:
                chapter = item["Chapter"]
                if above or chapter["path"] != "index.md":
                    at += 1
                    chapter["number"] = [*above, at]
                chapter["parent_names"] = names
                go(chapter["sub_items"], [*above, at], [*names, chapter["name"]])

    go(items, list(above), [])


def main():
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2:] == ["html"] else 1)
    _, book = json.load(sys.stdin)
    Book(book["items"]).make()
    json.dump(book, sys.stdout)


main()
