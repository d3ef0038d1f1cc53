//! `fmpl install`: puts the command, the libraries, the headers and the files by which pkg-config and CMake find them under a prefix.
//!
//! ```text
//! PREFIX/bin/fmpl
//!        lib/libfmpl.so -> libfmpl.so.0 -> libfmpl.so.0.1.0     lib/libfmpl.a
//!        lib/libfmpl_blacs.so, .a, libfmpl_blacs64.so, .a, and lib/pkgconfig/fmpl_blacs.pc, if they were built
//!        lib/pkgconfig/fmpl.pc                                  lib/cmake/fmpl/fmplConfig.cmake, fmplConfigVersion.cmake
//!        bin/fmplcc, fmplc++, fmplfort: compilers with the options  share/modulefiles/fmpl/0.1.0
//!        share/man/man1/fmpl.1, …                                share/bash-completion, zsh, fish: completions of the command
//!        include/fmpl.h  fmplf.h  fmpl.f90  acp.h  fmpl.hpp and its parts in fmpl/
//! ```
//!
//! The libraries are those that were built with this very executable: they lie next to it. They are made smaller ([`slim`]). The headers
//! are inside it. What is installed names no absolute path, so the tree may be moved.

mod pages;
mod slim;

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// The number in the soname; `src/build.rs` has it too.
const SO_MAJOR: &str = "0";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the C compiler must link behind a static `libfmpl.a`.
const STATIC_LIBS: &str = "-lpthread -ldl -lrt -lm";

macro_rules! includes {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../../../include/", $name)))),*] };
}
const INCLUDES: [(&str, &str); 13] = includes!(
    "acp.h" "fmpl.h" "fmplf.h" "fmpl.f90" "fmpl.hpp" "fmpl/buffers.hpp" "fmpl/comm.hpp" "fmpl/error.hpp" "fmpl/global.hpp"
    "fmpl/grid.hpp" "fmpl/memory.hpp" "fmpl/reductions.hpp" "fmpl/scope.hpp"
);

/// Files with `@LIBDIR@` and `@VERSION@` in them. The three compilers are one script, which looks at its name.
const SCRIPTS: [(&str, &str); 4] = [
    ("bin/fmplcc", include_str!("../../packaging/wrapper.sh")),
    ("bin/fmplc++", include_str!("../../packaging/wrapper.sh")),
    ("bin/fmplfort", include_str!("../../packaging/wrapper.sh")),
    (concat!("share/modulefiles/fmpl/", env!("CARGO_PKG_VERSION")), include_str!("../../packaging/modulefile")),
];

/// Install the command, the libraries, the headers, and what pkg-config and CMake need to find them.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Where it shall be found
    #[arg(long, value_name = "DIR", default_value = "/usr/local")]
    prefix: PathBuf,
    /// Where under the prefix the libraries belong, such as lib64
    #[arg(long, value_name = "DIR", default_value = "lib")]
    libdir: PathBuf,
    /// Install command and libraries as they were built, with what debuggers read
    #[arg(long)]
    unstripped: bool,
    /// Put before the prefix while installing, for packagers
    #[arg(long, value_name = "DIR")]
    destdir: Option<PathBuf>,
}

/// Does it, and prints what was installed.
pub fn main(options: &Options) -> ExitCode {
    match install(options) {
        Ok(root) => {
            println!("fmpl {VERSION} is installed in {}", root.display());
            println!("  C:       fmplcc app.c, or: cc app.c $(pkg-config --cflags --libs fmpl); C++: fmplc++ app.cc");
            println!(
                "  Fortran: fmplfort app.f90, or: gfortran {}/include/fmpl.f90 app.f90 -lfmpl",
                options.prefix.display()
            );
            println!("  CMake:   find_package(fmpl) and link fmpl::fmpl or fmpl::static");
            let pkgconfig = options.prefix.join(&options.libdir).join("pkgconfig");
            println!("  When pkg-config does not find it: export PKG_CONFIG_PATH={}", pkgconfig.display());
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("fmpl install: {text}");
            ExitCode::FAILURE
        }
    }
}

fn install(options: &Options) -> Result<PathBuf, String> {
    if !options.prefix.is_absolute() && options.destdir.is_some() {
        return Err("with --destdir the prefix must be an absolute path".to_owned());
    }
    let root = match &options.destdir {
        Some(destdir) => destdir.join(options.prefix.strip_prefix("/").unwrap_or(&options.prefix)),
        None => options.prefix.clone(),
    };
    // Relative to the prefix, for the tree may be moved.
    let libdir = options.libdir.strip_prefix(&options.prefix).unwrap_or(&options.libdir);
    if libdir.components().any(|part| !matches!(part, Component::Normal(_))) || libdir.as_os_str().is_empty() {
        return Err(format!("--libdir {} is not a directory under the prefix", options.libdir.display()));
    }
    let command = std::env::current_exe().map_err(|error| format!("cannot find this executable: {error}"))?;
    let built = |name: &str| built(&command, name);
    let (shared, archive) = (built("libfmpl.so")?, built("libfmpl.a")?);
    let lib = root.join(libdir);
    let put = |from: &Path, to: &Path| put_program(from, to, options.unstripped);

    put(&command, &root.join("bin/fmpl"))?;
    put_libraries(&lib, "fmpl", [&shared, &archive], options.unstripped)?;
    // The BLACS are packages of their own, which may not have been built.
    for (name, place) in [("fmpl_blacs", ""), ("fmpl_blacs64", "examples/")] {
        let (shared, archive) = (built(&format!("{place}lib{name}.so")), built(&format!("{place}lib{name}.a")));
        if let (Ok(shared), Ok(archive)) = (shared, archive) {
            put_libraries(&lib, name, [&shared, &archive], options.unstripped)?;
            let about = "BLACS over FMPL: ScaLAPACK without MPI";
            write(&lib.join(format!("pkgconfig/{name}.pc")), &pkg_config(name, about, libdir))?;
        }
    }
    for (name, text) in INCLUDES {
        write(&root.join("include").join(name), text)?;
    }
    let about = "Message passing by remote memory writes, matched at the sender";
    write(&lib.join("pkgconfig/fmpl.pc"), &pkg_config("fmpl", about, libdir))?;
    write(&lib.join("cmake/fmpl/fmplConfig.cmake"), &cmake_config(libdir))?;
    write(&lib.join("cmake/fmpl/fmplConfigVersion.cmake"), &cmake_version())?;
    for (name, text) in SCRIPTS {
        let text = text.replace("@LIBDIR@", &libdir.display().to_string()).replace("@VERSION@", VERSION);
        let to = root.join(name);
        write(&to, &text)?;
        let mode = if name.starts_with("bin/") { 0o755 } else { 0o644 };
        fs::set_permissions(&to, fs::Permissions::from_mode(mode)).map_err(failed(&to, "set the mode of"))?;
    }
    pages::put(&root.join("share"))?;
    Ok(root)
}

/// `libNAME.so` with its two longer names, and `libNAME.a`.
fn put_libraries(lib: &Path, name: &str, [shared, archive]: [&Path; 2], unstripped: bool) -> Result<(), String> {
    let versioned = format!("lib{name}.so.{VERSION}");
    let soname = format!("lib{name}.so.{SO_MAJOR}");
    put_program(shared, &lib.join(&versioned), unstripped)?;
    link(&versioned, &lib.join(&soname))?;
    link(&soname, &lib.join(format!("lib{name}.so")))?;
    let to = lib.join(format!("lib{name}.a"));
    if unstripped {
        return put(archive, &to, 0o644);
    }
    make_room(&to)?;
    slim::archive(shared, archive, &to)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(0o644)).map_err(failed(&to, "set the mode of"))
}

fn put_program(from: &Path, to: &Path, unstripped: bool) -> Result<(), String> {
    put(from, to, 0o755)?;
    if unstripped { Ok(()) } else { slim::program(to) }
}

/// The library that was built with the executable: next to it, or, when only a test was built, in `deps` below; the newer one.
fn built(command: &Path, name: &str) -> Result<PathBuf, String> {
    let beside = command.parent().unwrap_or(Path::new("."));
    let age = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
    [beside.join("deps").join(name), beside.join(name)].into_iter().filter(|path| path.is_file()).max_by_key(age).ok_or_else(
        || {
            format!(
                "{name} is not in {}, next to this executable. Build both first, in the source directory: cargo build --release; \
                 then: target/release/fmpl install --prefix DIR",
                beside.display()
            )
        },
    )
}

fn failed<'a>(path: &'a Path, what: &'a str) -> impl Fn(io::Error) -> String + 'a {
    move |error| {
        let advice =
            if error.kind() == io::ErrorKind::PermissionDenied { "; choose another --prefix, or use sudo" } else { "" };
        format!("cannot {what} {}: {error}{advice}", path.display())
    }
}

/// Makes room for a file: its directory, and nothing in its place. A library or command in use is replaced, not written over.
fn make_room(to: &Path) -> Result<(), String> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(failed(parent, "make the directory"))?;
    }
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(to, "replace")(error)),
        _ => Ok(()),
    }
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    if let (Ok(from), Ok(to)) = (from.canonicalize(), to.canonicalize())
        && from == to
    {
        return Err(format!("{} would be installed over itself; run the one that was built", to.display()));
    }
    make_room(to)?;
    fs::copy(from, to).map_err(failed(to, "write"))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed(to, "set the mode of"))
}

fn link(target: &str, at: &Path) -> Result<(), String> {
    make_room(at)?;
    symlink(target, at).map_err(failed(at, "link"))
}

fn write(to: &Path, text: &str) -> Result<(), String> {
    make_room(to)?;
    fs::write(to, text).map_err(failed(to, "write"))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o644)).map_err(failed(to, "set the mode of"))
}

/// From a directory that is so many names below the libraries' up to the prefix.
fn up(libdir: &Path, names: usize) -> String {
    vec![".."; libdir.components().count() + names].join("/")
}

fn pkg_config(name: &str, about: &str, libdir: &Path) -> String {
    let (up, libdir) = (up(libdir, 1), libdir.display());
    format!(
        "prefix=${{pcfiledir}}/{up}\n\
         libdir=${{prefix}}/{libdir}\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: {name}\n\
         Description: {about}\n\
         Version: {VERSION}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -l{name}\n\
         Libs.private: {STATIC_LIBS}\n"
    )
}

fn cmake_config(libdir: &Path) -> String {
    let (up, libdir) = (up(libdir, 2), libdir.display());
    let libraries: Vec<&str> = STATIC_LIBS.split(' ').map(|lib| lib.trim_start_matches("-l")).collect();
    format!(
        r#"# fmpl::fmpl is the shared library, fmpl::static the static one. FMPL_FORTRAN_MODULE is the source of the Fortran module: add it
# to a target's sources. Links are followed first: CMake may have come here by /lib, where that is /usr/lib.
get_filename_component(_fmpl_prefix "${{CMAKE_CURRENT_LIST_DIR}}" REALPATH)
get_filename_component(_fmpl_prefix "${{_fmpl_prefix}}/{up}" ABSOLUTE)
set(FMPL_FORTRAN_MODULE "${{_fmpl_prefix}}/include/fmpl.f90")
set(FMPL_COMMAND "${{_fmpl_prefix}}/bin/fmpl")
if(NOT TARGET fmpl::fmpl)
  add_library(fmpl::fmpl SHARED IMPORTED)
  set_target_properties(fmpl::fmpl PROPERTIES
    IMPORTED_LOCATION "${{_fmpl_prefix}}/{libdir}/libfmpl.so.{VERSION}"
    IMPORTED_SONAME "libfmpl.so.{SO_MAJOR}"
    INTERFACE_INCLUDE_DIRECTORIES "${{_fmpl_prefix}}/include")
endif()
if(NOT TARGET fmpl::static)
  add_library(fmpl::static STATIC IMPORTED)
  set_target_properties(fmpl::static PROPERTIES
    IMPORTED_LOCATION "${{_fmpl_prefix}}/{libdir}/libfmpl.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "${{_fmpl_prefix}}/include"
    INTERFACE_LINK_LIBRARIES "{}")
endif()
# fmpl::blacs stands before ScaLAPACK in target_link_libraries; it brings the BLACS, over FMPL.
if(NOT TARGET fmpl::blacs AND EXISTS "${{_fmpl_prefix}}/{libdir}/libfmpl_blacs.so.{VERSION}")
  add_library(fmpl::blacs SHARED IMPORTED)
  set_target_properties(fmpl::blacs PROPERTIES
    IMPORTED_LOCATION "${{_fmpl_prefix}}/{libdir}/libfmpl_blacs.so.{VERSION}"
    IMPORTED_SONAME "libfmpl_blacs.so.{SO_MAJOR}")
endif()
unset(_fmpl_prefix)
"#,
        libraries.join(";")
    )
}

/// A request is met by a version with the same first two numbers that is not older: before 1.0 the second one breaks.
fn cmake_version() -> String {
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    format!(
        r#"set(PACKAGE_VERSION "{VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif(PACKAGE_FIND_VERSION VERSION_LESS "{minor}")
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"#
    )
}
