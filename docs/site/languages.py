"""The table of all calls by language: what a call of C is in Fortran, Rust, C++ and Python, and whether a test uses it there.

    python3 docs/site/languages.py        what is missing, or in no test, language by language; how many of how many

In C++ every call of C can be made as it is; the table has what C++ has of its own. A call of C counts as tested where its name stands in a
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
        missing = [name for name, forms in rows if not forms[language]]
        untested = [name for name, forms in rows if forms[language] and not languages.is_tested(language, forms[language])]
        print(f"{language}: {len(rows) - len(missing)} of {len(rows)}, in no test {len(untested)}")
        for what, names in (("missing", missing), ("in no test", untested)):
            if names:
                print(f"  {what}: {' '.join(names)}")


if __name__ == "__main__":
    main()
