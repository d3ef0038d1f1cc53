"""Reads `include/fmpl.f90`: how each call is declared in Fortran."""

import re
from dataclasses import dataclass


@dataclass
class Form:
    code: str  # the interface, without what only compilers need
    text: str  # the description
    parameters: dict  # name: description
    longer: str  # of two forms the one with 64-bit integers, or nothing
    lengths: list  # the arguments in which the two differ


def read(path):
    """The forms of all calls by their names, and the names of the functions of reductions."""
    forms, reductions, comment, block = {}, set(), [], None
    for line in path.read_text().splitlines():
        line = line.strip()
        if line.startswith("!>") or line.startswith("!!"):
            comment.append(line[2:].strip())
        elif line.startswith(("interface", "abstract interface")):
            block = []
        elif line.startswith("end interface"):
            form, name = of_block(block, comment)
            forms[name], block, comment = form, None, []
        elif block is not None:
            block.append(line)
        elif found := re.match(r"procedure\(fmpl_reduction\).*:: (\w+)$", line):
            reductions.add(found[1])
            comment = []
        elif not line:
            comment = []
    return forms, reductions


def of_block(block, comment):
    """The form that an interface block declares, and its name."""
    variants, current = [], None
    for line in block:
        if found := re.match(r"((?:subroutine|function) (\w+)\(.*?\))(.*)", line):
            tail = re.search(r"result\(\w+\)", found[3])
            current = (found[2], [found[1] + (" " + tail[0] if tail else "")], {})
            variants.append(current)
        elif line.startswith("end "):
            current = None
        elif current and "::" in line and not line.startswith(("import", "!")):
            kind, name = line.split(" :: ")
            current[1].append(f"  {line}")
            current[2][name] = kind
    name, code, kinds = variants[0]
    second = variants[1] if len(variants) > 1 else ("", [], {})
    differing = [argument for argument, kind in kinds.items() if second[2].get(argument, kind) != kind]
    text, parameters = [], {}
    for line in comment:
        if found := re.match(r"@param (\w+) (.*)", line):
            parameters[last := found[1]] = found[2]
        elif parameters:
            parameters[last] += " " + line
        else:
            text.append(line)
    return Form("\n".join(code), " ".join(text), parameters, second[0], differing), name
