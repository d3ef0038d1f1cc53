//! Gives `libfmpl.so` its soname, so that programs linked with 0.1 go on working with a later 0.x of the same interface.
//!
//! Cargo hands arguments for shared libraries on to the shared libraries of packages that depend on this one, behind their own: those
//! would get this soname. Arguments for everything are not handed on; the programs take the name off again.
//!
//! What the library calls of its own interface is its own, also where a program or a tool defines the same names
//! (`-Bsymbolic-functions`).
//!
//! A shared library that has it stays until the process ends, which it watches: `dlclose` does not unload it (`nodelete`).
//!
//! Addresses within the library that the loader adjusts are packed where the C library takes them so, from 2.36 on: a tenth of a megabyte.
//! The compiler's linker and those of binutils 2.38 know how; older ones say that they ignore it.

use std::process::Command;

/// Is the program built for the machine that builds it, with a C library that knows packed adjustments?
fn takes_packed() -> bool {
    let var = |name| std::env::var(name).unwrap_or_default();
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let number = text.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    var("TARGET") == var("HOST") && number.is_some_and(|minor| minor >= 36)
}

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rustc-link-arg=-Wl,-soname,libfmpl.so.0");
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-link-arg=-Wl,-Bsymbolic-functions");
    if takes_packed() {
        println!("cargo:rustc-link-arg=-Wl,-z,pack-relative-relocs");
    }
    for programs in ["bins", "tests", "examples", "benches"] {
        println!("cargo:rustc-link-arg-{programs}=-Wl,-soname,");
    }
}
