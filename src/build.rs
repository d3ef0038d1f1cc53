//! Gives `libfmpl.so` its soname, so that programs linked with 0.1 go on working with a later 0.x of the same interface.
//!
//! Cargo hands arguments for shared libraries on to the shared libraries of packages that depend on this one, behind their own: those
//! would get this soname. Arguments for everything are not handed on; the programs take the name off again.
//!
//! What the library calls of its own interface is its own, also where a program or a tool defines the same names
//! (`-Bsymbolic-functions`).
//!
//! A shared library that has it stays until the process ends, which it watches: `dlclose` does not unload it (`nodelete`).

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rustc-link-arg=-Wl,-soname,libfmpl.so.0");
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-link-arg=-Wl,-Bsymbolic-functions");
    for programs in ["bins", "tests", "examples", "benches"] {
        println!("cargo:rustc-link-arg-{programs}=-Wl,-soname,");
    }
}
