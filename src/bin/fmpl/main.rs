//! The `fmpl` command.

fn main() {}
