"""Finds what a call of C is in C++ and in Python: there a member has the name of the call, or it has another and is not found.

C++ is read from `include/fmpl/*.hpp`, Python from the package's stub.
"""

import ast
import re

MEMBER = re.compile(r"    (template <.*> )?([\w:<>,* ]+ [*&]?)(\w+)\((.*?)\)( const)?( noexcept)?(?=;| \{| :|$)")


def plain(call):
    """The name that a member would have. That of `fmpl_free` is another's: there memory is freed when it is let go."""
    return re.sub("^fmpl_(comm_)?", "", call) if call != "fmpl_free" else ""


class Cpp:
    """The public members of `fmpl::comm`, `fmpl::scope` and `fmpl::job`."""

    CLASSES = ("comm", "scope", "job")

    def __init__(self, include):
        self.members = {}
        for file in [include / "fmpl.hpp", *sorted((include / "fmpl").glob("*.hpp"))]:
            kind, public, before = "", False, ""
            for line in file.read_text().splitlines():
                if found := re.match(r"class (\w+) \{$", line):
                    kind, public = found[1], False
                elif line.strip() in ("public:", "private:"):
                    public = line.strip() == "public:"
                elif line.startswith("}"):
                    kind = ""
                elif (found := MEMBER.match(line)) and public and kind in self.CLASSES:
                    template = before.strip() + "\n" if re.fullmatch(r" {4}template <.*>", before) else ""
                    self.members.setdefault((kind, found[3]), template + found[0].strip())
                before = line

    def of(self, call):
        for kind in self.CLASSES:
            if code := self.members.get((kind, plain(call))):
                return f"fmpl::{kind}::{plain(call)}", code
        return None


class Python:
    """The functions of the package, and the methods of `Comm` and `Job`."""

    def __init__(self, stub):
        self.functions = {}
        text = stub.read_text()
        for node in ast.parse(text).body:
            where = node.name + "." if isinstance(node, ast.ClassDef) and node.name in ("Comm", "Job") else ""
            for function in node.body if where else [node]:
                if isinstance(function, ast.FunctionDef):
                    code = ast.get_source_segment(text, function).removesuffix(": ...")
                    code = "\n".join(line.removeprefix("    ") for line in code.splitlines()) if where else code
                    prefix = "@property\n" if function.decorator_list else ""
                    self.functions.setdefault((where, function.name), prefix + code)

    def of(self, call):
        for where in ("Comm.", "Job.", ""):
            if code := self.functions.get((where, plain(call))):
                return f"fmpl.{where}{plain(call)}", code
        return None
