#!/usr/bin/env python3
"""Does what a Spack recipe says, without Spack, which no package brings: fetches the commit that it names into a directory of its own,
builds and installs it by the recipe's own functions, and runs the recipe's check.

    spack.py PACKAGE.py SOURCE PREFIX [+variant ...]

What a recipe asks of Spack is here as far as this one needs it; a name that is missing is an error, so that the recipe cannot say what
nobody has tried.
"""

import os
import pathlib
import subprocess
import sys
import types

recipe, source, prefix, *variants = sys.argv[1:]
declared = {"version": [], "variant": [], "depends_on": [], "license": []}


class Executable:
    def __init__(self, name):
        self.name = str(name)

    def __call__(self, *arguments):
        subprocess.run([self.name, *map(str, arguments)], check=True)


class Prefix(str):
    """Spack's paths: prefix.bin.fmpl"""

    def __getattr__(self, name):
        return Prefix(f"{self}/{name}")


class Spec:
    def satisfies(self, what):
        assert what.lstrip("+~") in [name for name, *_ in declared["variant"]], f"{what}: no such variant"
        return what in variants


class Package:
    pass


class Environment(dict):
    def prepend_path(self, name, path):
        self[name] = ":".join(filter(None, [str(path), self.get(name) or os.environ.get(name)]))


def directive(name):
    return lambda *what, **how: declared[name].append((*what, how))


def run_after(phase):
    assert phase == "install"
    return lambda function: function


def on_package_attributes(**conditions):
    assert conditions == {"run_tests": True}
    return lambda function: function


def which(name, required=False):
    return Executable(name)


spack = types.ModuleType("spack.package")
names = {name: directive(name) for name in declared}
vars(spack).update(names, Package=Package, Executable=Executable, run_after=run_after, which=which, on_package_attributes=on_package_attributes)
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": spack})
module = {"__file__": recipe, "__name__": "recipe"}
exec(compile(pathlib.Path(recipe).read_text(), recipe, "exec"), module)
package = module["Fmpl"]()
package.prefix = Prefix(prefix)
assert package.__doc__ and declared["license"] and declared["version"], "what a recipe must say"

# The version: what the recipe's place of git has, though its branch may have another name here.
subprocess.run(["git", "clone", "--quiet", "--depth", "1", package.git, source], check=True)
os.chdir(source)
package.install(Spec(), package.prefix)
environment = Environment()
package.setup_run_environment(environment)
os.environ.update(environment)
package.check_install()
