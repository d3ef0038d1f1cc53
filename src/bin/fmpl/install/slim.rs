//! Libraries without what only debuggers and the Rust compiler read. The archive becomes one object: what nothing of the interface needs is
//! gone, of what else is in it no name is seen (another archive made by Rust may be linked beside it), and the names that a tool may
//! define are weak, beside the second ones (`pfmpl_*`).
//!
//! It takes `strip`, `ld`, `nm`, `objcopy` and `ar`, which come with every C compiler (binutils).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sections of functions and of values become one each: a name and a header for every one of them is half of the archive.
const MERGED: &str = "SECTIONS {
  .text : { *(.text .text.*) }
  .rodata : { *(.rodata .rodata.*) }
  .gcc_except_table : { *(.gcc_except_table .gcc_except_table.*) }
  .data.rel.ro : { *(.data.rel.ro .data.rel.ro.*) }
  .data : { *(.data .data.*) }
  .tdata : { *(.tdata .tdata.*) }
  .tbss : { *(.tbss .tbss.*) }
  .bss : { *(.bss .bss.*) }
}
";

/// Runs one of the tools; what it says, or why it has failed.
fn run<const N: usize>(tool: &str, arguments: [&str; N]) -> Result<String, String> {
    let advice = "install binutils, or give --unstripped";
    let output =
        Command::new(tool).args(arguments).output().map_err(|e| format!("cannot run {tool}: {e}; {advice}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{tool} has failed ({}): {}; {advice}", output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A program or shared library without its symbols and what debuggers read.
pub fn program(file: &Path) -> Result<(), String> {
    run("strip", ["--strip-unneeded", "-R", ".comment", &file.display().to_string()]).map(drop)
}

/// A directory that goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn file(&self, name: &str, text: &str) -> Result<String, String> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {path}: {e}"))?;
        Ok(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names in what `nm` lists (name, kind, place), and their places.
fn listed(text: &str) -> BTreeMap<&str, &str> {
    let words = text.lines().map(|line| line.split(' '));
    words.filter_map(|mut words| Some((words.next()?, words.nth(1)?))).collect()
}

/// Writes the archive anew at `to`, with what the shared library of the same build exports and nothing else.
pub fn archive(shared: &Path, from: &Path, to: &Path) -> Result<(), String> {
    let scratch = Scratch(to.with_extension(format!("{}.parts", std::process::id())));
    fs::create_dir_all(&scratch.0).map_err(|e| format!("cannot make the directory {}: {e}", scratch.0.display()))?;
    let [all, one, end] = ["all.o", "one.o", "end.o"].map(|name| scratch.path(name));
    let shared = shared.display().to_string();

    let exported = run("nm", ["-D", "--defined-only", "--format=posix", &shared])?;
    let exported: BTreeSet<&str> = listed(&exported).into_keys().collect();
    let wanted = scratch.file("wanted", &exported.iter().map(|name| format!("-u {name}\n")).collect::<String>())?;
    let script = scratch.file("merged.ld", MERGED)?;
    run("ld", ["-r", "--gc-sections", "-o", &all, &format!("@{wanted}"), &from.display().to_string()])?;
    run("objcopy", ["--strip-debug", "-R", ".llvmbc", "-R", ".llvmcmd", &all])?;
    run("ld", ["-r", "-T", &script, "-o", &one, &all])?;

    let places = run("nm", ["--defined-only", "--format=posix", &one])?;
    let names = scratch.file("names", &names(&exported, &listed(&places)))?;
    run("objcopy", [&format!("@{names}"), &one, &end])?;
    run("strip", ["--strip-unneeded", "-R", ".comment", &end])?;
    run("ar", ["rcsD", &to.display().to_string(), &end]).map(drop)
}

/// What becomes of the names: options of objcopy. A plain name that has a second one is that of the file itself from now on, where the
/// library's own calls go, and beside it a weak one by which programs find the function, unless they define it.
fn names(exported: &BTreeSet<&str>, places: &BTreeMap<&str, &str>) -> String {
    let mut options = String::new();
    for name in exported {
        options.push_str(&format!("--keep-global-symbol={name}\n"));
        let plain = name.trim_end_matches('_').trim_end_matches('8');
        if !exported.contains(&*format!("p{plain}")) {
            continue;
        }
        match places.get(name) {
            Some(place) if plain == *name => options.push_str(&format!(
                "--redefine-sym={name}={name}.own\n--add-symbol={name}=.text:0x{place},function,weak\n"
            )),
            // Of Fortran, which no function of the library calls.
            _ => options.push_str(&format!("--weaken-symbol={name}\n")),
        }
    }
    options
}
