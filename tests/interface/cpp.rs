//! The C++ interface, `include/fmpl.hpp`: programs in C++17 and C++20, with exceptions and without, of one file and of two, and what must
//! not compile.

use std::path::PathBuf;
use std::process::Command;

use crate::programs::{have, link_shared, must, prefix, run, run_all_to_their_end, run_alone, scratch};
use crate::root;

const STANDARDS: [&str; 2] = ["c++17", "c++20"];

fn build(name: &str, standard: &str, options: &[&str], sources: &[&str]) -> PathBuf {
    let program = scratch("cpp").join(format!("{name}.{standard}"));
    let mut command = Command::new("g++");
    command.arg(format!("-std={standard}")).args(["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]);
    command.args(options).args(sources.iter().map(|source| root().join(source))).arg("-o").arg(&program);
    must(link_shared(&mut command));
    program
}

#[test]
fn every_cpp_call_does_what_it_says() {
    if !have("g++") {
        return;
    }
    for standard in STANDARDS {
        let program = build("calls", standard, &[], &["tests/cpp/calls.cc"]);
        run_alone(&program);
        for ranks in 1..=4 {
            let said = run(&program, ranks);
            assert!(said.contains(&format!("all of it on {ranks} ranks")), "{said}");
            // Of the communicator that ends behind finalize nothing is said.
            assert!(!said.contains("is not freed"), "{said}");
        }
    }
}

#[test]
fn every_other_cpp_call_does_what_it_says() {
    if !have("g++") {
        return;
    }
    for standard in STANDARDS {
        let program = build("more", standard, &[], &["tests/cpp/more.cc"]);
        for ranks in 1..=4 {
            let said = run(&program, ranks);
            assert!(said.contains(&format!("more of it on {ranks} ranks")), "{said}");
        }
        let output = run_all_to_their_end(&program, &["abort"], 2);
        assert_eq!(output.status.code(), Some(43), "{output:?}");
        for how in ["id", "exchange"] {
            let output = must(Command::new("timeout").arg("100").arg(&program).arg(how));
            assert!(String::from_utf8_lossy(&output.stdout).contains("joined by an"), "{output:?}");
        }
    }
}

#[test]
fn cpp_without_exceptions_returns_results() {
    if !have("g++") {
        return;
    }
    for standard in STANDARDS {
        let program = build("returning", standard, &["-fno-exceptions"], &["tests/cpp/returning.cc"]);
        run_alone(&program);
        for ranks in [1, 3] {
            run(&program, ranks);
        }
    }
}

/// One that throws and one that does not: the functions of the header that both have are different ones.
#[test]
fn a_cpp_program_of_two_files() {
    if !have("g++") {
        return;
    }
    let files = ["tests/cpp/calls.cc", "tests/cpp/returning.cc"];
    for standard in STANDARDS {
        let program = build("two", standard, &["-DTWO_FILES"], &files);
        for ranks in [1, 2, 4] {
            run(&program, ranks);
        }
    }
}

#[test]
fn the_cpp_example_does_what_it_says() {
    if !have("g++") {
        return;
    }
    let program = build("heat", "c++17", &[], &["examples/cpp/heat.cc"]);
    for ranks in [1, 2, 3, 4] {
        let said = run(&program, ranks);
        assert!(said.contains(&format!("60 points on {ranks} ranks: a straight line")), "{said}");
    }
}

/// What would go wrong at run time does not compile, and the compiler's message says what to do.
#[test]
fn wrong_cpp_does_not_compile() {
    if !have("g++") {
        return;
    }
    let right = "int x = 0; s.irecv(x, 0, 0);";
    let wrong = [
        ("int *p = nullptr; world.send(p, 0, 0);", "fmpl::span(pointer, count)"),
        ("world.send(std::vector<std::string>(3), 0, 0);", "trivially copyable"),
        ("const int x = 1; world.recv(x, 0, 0);", "a constant buffer"),
        ("s.isend(std::vector<int>(3), 0, 0);", "this temporary would be gone"),
        ("int x = 0, y = 1; world.allreduce(x, [y](int a, int) { return a + y; });", "no captures"),
        ("long x = 0; world.allreduce(x, fmpl::abs_maximum{});", "abs_maximum and abs_minimum are for"),
    ];
    let place = scratch("cpp");
    let compile = |body: &str| {
        let source = place.join("wrong.cc");
        let text =
            format!("#include <fmpl.hpp>\nint main() {{ fmpl::comm world; fmpl::scope s(world); (void)s; {body} }}\n");
        std::fs::write(&source, text).expect("written");
        let mut command = Command::new("g++");
        command.args(["-std=c++17", "-fsyntax-only", "-I"]).arg(prefix().join("include")).arg(source);
        command.output().expect("g++ runs")
    };
    let output = compile(right);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (body, says) in wrong {
        let output = compile(body);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(says), "{body}: {said}");
    }
}
