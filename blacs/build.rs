//! Gives the shared libraries their sonames, has what they call of themselves bound within them, and keeps them from being unloaded, as
//! `libfmpl.so` has. The one that is named as an example takes arguments for everything only; the other has one of its own, which comes
//! later and holds.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg=-Wl,-soname,libfmpl_blacs64.so.0");
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-link-arg=-Wl,-Bsymbolic-functions");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfmpl_blacs.so.0");
}
