//! Gives `libfmpl.so` its soname, so that programs linked with 0.1 go on working with a later 0.x of the same interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfmpl.so.0");
}
