"""Reductions as MPI has them."""

for title, limit, test, name in [
        ("every reduction x type x 1 to 8 ranks, every way, also between nodes: the bits", "a serial reference",
         "collective", "every_predefined_function"),
        ("every reduction x type x 1 to 8 ranks from C and Fortran: the bits", "a serial reference", "interface", "every_predefined_function"),
        ("every reduction x type x 1 to 8 ranks from Rust: the bits", "a serial reference", "rust_api", "reductions::")]:
    test_line(title, limit, "cargo", "test", "--locked", "--release", "--test", test, name, set_name="users")
