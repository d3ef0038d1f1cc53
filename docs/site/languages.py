"""The table of all calls by language: what a call of C is in Fortran, Rust, C++ and Python, and whether a test uses it there.

    python3 docs/site/languages.py        what is missing, or in no test, language by language; how many of how many

In C++ every call of C can be made as it is; the table has what C++ has of its own. Where a call makes no sense in a language the table says
what does its work there. A call of C counts as tested where its name stands in a
program of the tests or the examples, and so does what it is elsewhere, as the last part of its name.
"""

import functools
import pathlib
import re

TESTS = {
    "C": ["tests/**/*.c", "examples/**/*.c"],
    "Fortran": ["tests/**/*.f90", "tests/**/*.f", "examples/**/*.f90"],
    "Rust": ["tests/**/*.rs", "examples/**/*.rs"],
    "C++": ["tests/**/*.cc", "examples/**/*.cc"],
    "Python": ["tests/python/*.py", "examples/python/*.py"],
}


# The calls that a language has no form of, and why: in a word, what does it there.
NOT_THERE = {
    "Python": {
        "fmpl_alloc": "loans",  # memory that peers reach directly, for buffers that the interpreter does not own
        "fmpl_free": "loans",
        "fmpl_init_with": "init_id",  # a program that has an exchange of its own passes an identifier by it
        "fmpl_func_register": "named operations",  # a function of Python would be called by whatever thread waits in the library
        "fmpl_send_init": "isend",  # what is prepared once saves less than the interpreter takes for a call
        "fmpl_recv_init": "irecv",
        "fmpl_send_start": "isend",
        "fmpl_recv_start": "irecv",
        "acp_query_address": "buffers",  # there are no pointers
    },
}


class Languages:
    def __init__(self, root, calls):
        self.root, self.calls = root, calls

    @functools.cached_property
    def tests(self):
        return {
            language: "\n".join(file.read_text() for pattern in patterns for file in sorted(self.root.glob(pattern)))
            for language, patterns in TESTS.items()
        }

    def form(self, language, call):
        """What a call is in a language, or None."""
        if language == "C":
            return call
        if language == "Fortran":
            return call if call in self.calls.fortran else None
        found = next(forms for (title, _), forms in self.calls.others.items() if title == language).of(call)
        return found and found[0]

    def reason(self, language, call):
        """Why there is none."""
        return NOT_THERE.get(language, {}).get(call)

    def is_tested(self, language, form):
        name = re.split(r"::|\.", form)[-1]
        return bool(re.search(rf"\b{name}\b", self.tests[language], re.I if language == "Fortran" else 0))

    def rows(self):
        """The forms of each call by language."""
        for header in self.calls.headers:
            for part in header.parts:
                if self.calls.is_for_all_types(part):
                    continue
                for item in part.items:
                    if item.kind == "function":
                        yield item.name, {language: self.form(language, item.name) for language in TESTS}


def main():
    import calls

    root = pathlib.Path(__file__).resolve().parents[2]
    languages = Languages(root, calls.Calls(root))
    rows = list(languages.rows())
    for language in TESTS:
        senseless = [name for name, _ in rows if languages.reason(language, name)]
        if stale := [name for name, forms in rows if forms[language] and name in senseless]:
            raise ValueError(f"{language} has {stale}, which docs/site/languages.py says it has not")
        missing = [name for name, forms in rows if not forms[language] and name not in senseless]
        untested = [name for name, forms in rows if forms[language] and not languages.is_tested(language, forms[language])]
        of = len(rows) - len(senseless)
        print(f"{language}: {of - len(missing)} of {of}, in no test {len(untested)}")
        for what, names in (("without sense", senseless), ("missing", missing), ("in no test", untested)):
            if names:
                print(f"  {what}: {' '.join(names)}")


if __name__ == "__main__":
    main()
