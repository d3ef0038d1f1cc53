//! `fmpl install`: what it puts where, that the tree can be moved, and that pkg-config and CMake find it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::programs::{built_command, have, must, prefix, run, scratch};
use crate::root;

fn fresh(name: &str) -> std::path::PathBuf {
    let place = scratch(name);
    fs::remove_dir_all(&place).expect("an old tree is removed");
    place
}

#[test]
fn a_moved_tree_is_found_by_pkg_config() {
    let place = fresh("moved");
    must(Command::new(built_command()).args(["install", "--prefix", "/opt/fmpl", "--destdir"]).arg(&place));
    // A second time, over the first.
    must(Command::new(built_command()).args(["install", "--prefix", "/opt/fmpl", "--destdir"]).arg(&place));
    let moved = place.join("elsewhere");
    fs::rename(place.join("opt/fmpl"), &moved).expect("the tree is moved");
    let lib = moved.join("lib");
    let target = |name: &str| fs::read_link(lib.join(name)).expect(name);
    assert_eq!(target("libfmpl.so"), Path::new("libfmpl.so.0"));
    assert_eq!(target("libfmpl.so.0"), Path::new(concat!("libfmpl.so.", env!("CARGO_PKG_VERSION"))));
    if !have("pkg-config") {
        return;
    }
    for arguments in [&["--cflags", "--libs"][..], &["--static", "--cflags", "--libs"]] {
        let mut query = Command::new("pkg-config");
        let output = must(query.args(arguments).arg("fmpl").env("PKG_CONFIG_PATH", lib.join("pkgconfig")));
        let options = String::from_utf8(output.stdout).expect("options are text");
        let program = place.join("hello");
        let mut command = Command::new("cc");
        command.arg(root().join("examples/c/hello.c")).arg("-o").arg(&program).args(options.split_whitespace());
        must(&mut command);
        let needed = must(Command::new("ldd").arg(&program).env("LD_LIBRARY_PATH", &lib));
        let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
        assert!(needed.contains(&format!("libfmpl.so.0 => {}/libfmpl.so.0", lib.display())), "{needed}");
    }
    let version =
        must(Command::new("pkg-config").args(["--modversion", "fmpl"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig")));
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn another_directory_for_the_libraries() {
    let place = fresh("libdir");
    let multiarch = "lib/x86_64-linux-gnu";
    let install = |libdir: &str| {
        let mut command = Command::new(built_command());
        command.args(["install", "--unstripped", "--libdir", libdir, "--prefix"]).arg(place.join("prefix"));
        command.output().expect("it runs")
    };
    for wrong in ["../lib", "/usr/lib"] {
        let output = install(wrong);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("is not a directory under the prefix"), "{wrong}: {said}");
    }
    let output = install(multiarch);
    assert!(output.status.success(), "{output:?}");
    let lib = place.join("prefix").join(multiarch);
    assert!(lib.join("libfmpl.so.0").exists() && !place.join("prefix/lib/libfmpl.so").exists());
    // As it was built.
    let built = fs::metadata(lib.join("libfmpl.a")).expect("the archive").len();
    let stripped = fs::metadata(prefix().join("lib/libfmpl.a")).expect("the archive").len();
    assert!(built > 2 * stripped, "{built} and {stripped} bytes");
    if have("pkg-config") {
        let mut query = Command::new("pkg-config");
        let output = must(query.args(["--libs", "fmpl"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig")));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = said.split_whitespace().next().and_then(|word| word.strip_prefix("-L")).expect("a directory");
        assert_eq!(fs::canonicalize(named).expect("it is there"), fs::canonicalize(&lib).expect("it is there"));
    }
    let cmake = fs::read_to_string(lib.join("cmake/fmpl/fmplConfig.cmake")).expect("the file");
    assert!(cmake.contains("/../../../..\"") && cmake.contains(&format!("{multiarch}/libfmpl.a")), "{cmake}");
}

#[test]
fn the_compilers_build_programs_and_say_how() {
    // A space in every path that the compilers add.
    let place = fresh("the wrappers");
    must(Command::new(built_command()).args(["install", "--prefix"]).arg(&place));
    let bin = place.join("bin");
    let (c, fortran, cpp) = ("examples/c/ring.c", "examples/fortran/ring.f90", "examples/cpp/heat.cc");
    for (compiler, source, needs) in [("fmplcc", c, "cc"), ("fmplfort", fortran, "gfortran"), ("fmplc++", cpp, "g++")] {
        if !have(needs) {
            continue;
        }
        let call = |arguments: &[&str]| {
            let mut command = Command::new(bin.join(compiler));
            command.args(arguments).current_dir(&place);
            String::from_utf8_lossy(&must(&mut command).stdout).into_owned()
        };
        let source = root().join(source).display().to_string();
        let program = place.join(compiler);
        let to = program.display().to_string();
        call(&["-O1", &source, "-o", &to]);
        run(&program, 2);
        // In two steps.
        call(&["-c", &source, "-o", "part.o"]);
        call(&["part.o", "-o", &to]);
        run(&program, 2);
        // What is printed does it, too.
        for option in ["--showme", "-show"] {
            let said = call(&[option, &source, "-o", &to]);
            assert!(said.contains(" -lfmpl") && said.contains(&source), "{said}");
            must(Command::new("sh").args(["-c", &said]).current_dir(&place));
            assert!(!call(&[option, "-c", &source]).contains("-lfmpl"));
        }
        let (compile, link) = (call(&["--showme:compile"]), call(&["--showme:link"]));
        assert!(
            compile.starts_with("'-I/") && link.starts_with("'-L/") && link.ends_with("-lfmpl\n"),
            "{compile}{link}"
        );
        if compiler == "fmplcc" {
            let command = format!("cc {} '{source}' -o '{to}' {link}", compile.trim());
            must(Command::new("sh").args(["-c", &command]));
        }
        assert!(run(&program, 2).len() > 1);
    }
    // Without a space no quotes.
    let output = must(Command::new(prefix().join("bin/fmplcc")).args(["--showme", "a.c"]));
    let expected = |lib: &str| format!("a.c -L{lib} -Wl,-rpath,{lib} -lfmpl\n");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.ends_with(&expected(&prefix().join("lib").display().to_string())), "{said}");
    // Another compiler, and one that fails.
    let mut other = Command::new(bin.join("fmplcc"));
    let output = other.args(["--showme", "a.c"]).env("FMPL_CC", "clang").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("clang "), "{output:?}");
    let mut wrong = Command::new(bin.join("fmplcc"));
    assert!(!wrong.arg("there-is-no-such-file.c").output().expect("it runs").status.success());
}

#[test]
fn manual_pages_and_completions_are_those_of_the_command() {
    let share = prefix().join("share");
    let read = |name: &str| fs::read_to_string(share.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(read("man/man1/fmpl-run.1").contains("oversubscribe") && read("man/man1/fmpl.1").contains("doctor"));
    assert!(read("man/man1/fmplfort.1").contains("showme") && !share.join("man/man1/fmpl-daemon.1").exists());
    for name in ["bash-completion/completions/fmpl", "zsh/site-functions/_fmpl", "fish/vendor_completions.d/fmpl.fish"]
    {
        assert!(read(name).contains("oversubscribe"), "{name}");
    }
    let module = read(concat!("modulefiles/fmpl/", env!("CARGO_PKG_VERSION")));
    assert!(module.starts_with("#%Module") && module.contains("$prefix/lib\n"), "{module}");
    if have("bash") {
        let script = "source \"$1\"; COMP_WORDS=(fmpl do); COMP_CWORD=1; _fmpl fmpl do fmpl; echo ${COMPREPLY[@]}";
        let mut bash = Command::new("bash");
        bash.args(["-c", script, "bash"]).arg(share.join("bash-completion/completions/fmpl"));
        assert_eq!(String::from_utf8_lossy(&must(&mut bash).stdout).trim(), "doctor");
    }
    if have("man") {
        let mut man = Command::new("man");
        man.args(["--warnings=w", "-l"]).arg(share.join("man/man1/fmpl-run.1")).env("MANPAGER", "cat");
        man.env("LC_ALL", "C.UTF-8"); // else it warns where there is no such locale as the user's
        let output = must(&mut man);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn cmake_finds_both_libraries() {
    if !have("cmake") {
        return;
    }
    let place = fresh("cmake");
    fs::create_dir_all(&place).expect("a directory");
    let project = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(hello C)\nfind_package(fmpl {} REQUIRED)\n\
         add_executable(with_shared {source})\ntarget_link_libraries(with_shared fmpl::fmpl)\n\
         add_executable(with_static {source})\ntarget_link_libraries(with_static fmpl::static)\n\
         if(NOT EXISTS ${{FMPL_FORTRAN_MODULE}})\n  message(FATAL_ERROR \"no Fortran module\")\nendif()\n",
        env!("CARGO_PKG_VERSION"),
        source = root().join("examples/c/hello.c").display()
    );
    fs::write(place.join("CMakeLists.txt"), project).expect("the project is written");
    let build = place.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&place).arg("-B").arg(&build).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
    must(&mut configure);
    must(Command::new("cmake").arg("--build").arg(&build));
    // Found by a link to the libraries' directory, as by /lib where that is /usr/lib: what lies beside the link is not looked at.
    symlink(prefix().join("lib"), place.join("lib")).expect("a link");
    let mut linked = Command::new("cmake");
    linked.arg("-S").arg(&place).arg("-B").arg(place.join("linked"));
    must(linked.arg(format!("-Dfmpl_DIR={}", place.join("lib/cmake/fmpl").display())));
    let libraries = |program: &str| {
        String::from_utf8_lossy(&must(Command::new("ldd").arg(build.join(program))).stdout).contains("libfmpl.so.0")
    };
    assert!(libraries("with_shared"));
    assert!(!libraries("with_static"));
}

#[test]
fn what_is_missing_is_said_with_the_command_that_builds_it() {
    let place = fresh("alone");
    fs::create_dir_all(&place).expect("a directory");
    let command = place.join("fmpl");
    fs::copy(built_command(), &command).expect("the command is copied");
    let output =
        Command::new(&command).args(["install", "--prefix"]).arg(place.join("prefix")).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(text.contains("libfmpl.so") && text.contains("cargo build --release"), "{text}");
    assert!(!place.join("prefix").exists(), "nothing is installed by halves");
}
