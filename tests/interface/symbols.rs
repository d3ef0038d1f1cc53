//! What the libraries export: exactly the functions of the header, by both names, and the Fortran names, each of which a program can link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::programs::{have, must, prefix, scratch};
use crate::{fortran, header, reductions};

/// Is a function there on this kind of processor, by its first name or by its second?
fn is_here(name: &str) -> bool {
    reductions::links(name.strip_prefix("pfmpl_").map_or(name.to_owned(), |rest| format!("fmpl_{rest}")).as_str())
}

fn names() -> BTreeSet<String> {
    let all = header::functions().into_iter().chain(header::second_names()).chain(fortran::functions());
    all.map(|function| function.name).filter(|name| is_here(name)).collect()
}

#[test]
fn the_shared_library_exports_the_interface_and_nothing_else() {
    if !have("nm") {
        return;
    }
    let output = must(Command::new("nm").args(["-D", "--defined-only"]).arg(prefix().join("lib/libfmpl.so")));
    let exported: BTreeSet<String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .map(str::to_owned)
        .collect();
    assert_eq!(exported, names());
}

/// So other archives made by Rust can be linked beside it; and what has a second name is weak, so a tool can define it.
#[test]
fn the_archive_has_no_other_names_either() {
    if !have("nm") {
        return;
    }
    let archive = prefix().join("lib/libfmpl.a");
    let output = must(Command::new("nm").args(["-g", "--defined-only", "--format=posix"]).arg(archive));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let kinds: BTreeMap<String, char> =
        lines.filter_map(|(name, rest)| Some((name.to_owned(), rest.chars().next()?))).collect();
    assert_eq!(kinds.keys().cloned().collect::<BTreeSet<_>>(), names());
    for second in header::second_names() {
        let plain = &second.name[1..];
        assert_eq!((kinds[plain], kinds[&second.name]), ('W', 'T'), "{plain}");
    }
}

#[test]
fn every_function_links_from_both_libraries() {
    let place = scratch("symbols");
    let c = header::functions().into_iter().chain(header::second_names());
    let c: Vec<String> = c.map(|function| function.name).filter(|name| is_here(name)).collect();
    let fortran = fortran::functions().into_iter().map(|function| function.name);
    let fortran: Vec<String> = fortran.filter(|name| is_here(name)).collect();
    let declared: String = fortran.iter().map(|name| format!("void {name}(void);\n")).collect();
    let taken: String = c.iter().chain(&fortran).map(|name| format!("    (any){name},\n")).collect();
    let source = format!(
        "#define FMPL_PAPER_NAMES\n#include <fmpl.h>\n#include <acp.h>\n{declared}typedef void (*any)(void);\nstatic const any all[] = {{\n{taken}}};\n\
         int main(void) {{\n    unsigned k;\n    for (k = 0; k < sizeof all / sizeof *all; k++)\n        if (!all[k]) return 1;\n    \
         return fmpl_version() == FMPL_VERSION ? 0 : 2;\n}}\n"
    );
    fs::write(place.join("all.c"), source).expect("the program is written");
    let lib = prefix().join("lib");
    let build = |name: &str, libraries: &[String]| {
        let program = place.join(name);
        let mut command = Command::new("cc");
        // Casting to a function pointer of another type is what this program is for.
        command
            .args(["-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"])
            .arg("-I")
            .arg(prefix().join("include"));
        must(command.arg(place.join("all.c")).arg("-o").arg(&program).args(libraries));
        must(&mut Command::new(program));
    };
    let rpath = format!("-Wl,-rpath,{}", lib.display());
    build("shared", &[format!("-L{}", lib.display()), "-lfmpl".to_owned(), rpath]);
    let archive = lib.join("libfmpl.a").display().to_string();
    build("static", &[archive, "-lpthread".to_owned(), "-ldl".to_owned(), "-lm".to_owned()]);
}

#[test]
fn the_header_is_clean_in_every_language() {
    let place = scratch("languages");
    let use_it = "#include <fmpl.h>\n#include <acp.h>\nint main() { return fmpl_version() != FMPL_VERSION; }\n";
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c11"), ("cc", "c", "c17"), ("c++", "c++", "c++11"), ("c++", "c++", "c++17")]
    {
        if !have(compiler) {
            continue;
        }
        let source = place.join(format!("{standard}.source"));
        fs::write(&source, use_it.replace("main()", if language == "c" { "main(void)" } else { "main()" }))
            .expect("written");
        let mut command = Command::new(compiler);
        command.args([&format!("-std={standard}"), "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
        must(command.arg("-I").arg(prefix().join("include")).args(["-x", language]).arg(source));
    }
}
