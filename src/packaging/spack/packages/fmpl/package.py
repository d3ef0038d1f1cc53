# FMPL for Spack, from the clone in which this recipe lies:
#
#   spack repo add src/packaging/spack && spack install fmpl
#
# What it builds is the commit that is checked out there.

import pathlib

from spack.package import *


class Fmpl(Package):
    """Message passing by remote memory writes, matched at the sender; global memory, and BLACS without MPI."""

    git = pathlib.Path(__file__).resolve().parents[5].as_uri()

    license("MIT")
    version("main", branch="main")

    variant("ibverbs", default=False, description="link libibverbs, in place of loading it where there is one")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("rdma-core", when="+ibverbs")
    depends_on("pkgconfig", type="build", when="+ibverbs")

    def install(self, spec, prefix):
        features = ["--features", "ibverbs"] if spec.satisfies("+ibverbs") else []
        cargo = which("cargo", required=True)
        cargo("run", "--locked", "--release", *features, "--", "install", "--prefix", prefix)

    def setup_run_environment(self, env):
        # What a program that loads FMPL by its name needs, such as the Python package.
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.fmpl)("bench", "pingpong", "--sizes", "8", "--rounds", "1")
