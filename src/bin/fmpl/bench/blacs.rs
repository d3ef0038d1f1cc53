//! The BLACS over FMPL beside those of ScaLAPACK over MPI: the same C program (`blacs.c`) linked to each.

use std::path::Path;
use std::process::Command;

use super::against::compile_with;
use super::session::{Contestant, Start};
use super::{Bench, Case, Figure, Options, size_text};

pub static BENCH: Bench = Bench {
    name: "blacs",
    about: "matrices by the BLACS: half a round trip of dgesd2d, contiguous and not, dtrsd2d, dgebs2d; a dgsum2d to all",
    ranks: 2,
    indices: 64,
    figures: &[Figure::time("each", "us", 1e-3)],
    plan,
};

/// The program, for all contestants.
pub const SOURCE: &str = include_str!("blacs.c");

const KINDS: [&str; 5] = ["dgesd2d contiguous", "dgesd2d lda 2m", "dtrsd2d triangle", "dgsum2d to all", "dgebs2d"];

fn plan(o: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, name) in KINDS.iter().enumerate() {
        let usual: &[usize] = if kind < 3 { &[8, 64 << 10, 1 << 20, 8 << 20] } else { &[8 << 10, 1 << 20] };
        let sizes = if o.sizes.is_empty() { usual } else { &o.sizes };
        for n in sizes.iter().copied().filter(|n| *n >= 8) {
            let k = o.rounds_of(n);
            let command = format!("blacs {n} {k} {} {kind}", o.warm(k));
            cases.push(Case { label: format!("{name} {}", size_text(n)), ..Case::sized(n, command).of_doubles() });
        }
    }
    cases
}

/// FMPL's: `libfmpl_blacs.so` lies beside this command, or in the `lib` beside its directory.
pub fn ours(place: &Path) -> Result<Contestant, String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let here = me.parent().unwrap_or(Path::new("."));
    let lib = [here.to_owned(), here.join("../lib")].into_iter().find(|d| d.join("libfmpl_blacs.so").is_file());
    let Some(lib) = lib else {
        return Err(format!(
            "libfmpl_blacs.so is not beside {}; in the source directory: cargo build --release --workspace",
            me.display()
        ));
    };
    let program = place.join("blacs-fmpl");
    // Where it was built it has its plain name only; the program looks for the one with the version.
    let (built, wanted) = (lib.join("libfmpl_blacs.so"), place.join("libfmpl_blacs.so.0"));
    let built = built.canonicalize().map_err(|e| format!("{}: {e}", built.display()))?;
    std::os::unix::fs::symlink(&built, &wanted).map_err(|e| format!("{}: {e}", wanted.display()))?;
    let (built, path) = (built.display().to_string(), format!("-Wl,-rpath,{}", place.display()));
    compile_with("cc", SOURCE, &program, &[&built, &path, "-lm"])?;
    let launch = move |s: &Start| {
        let mut c = Command::new(&me);
        c.args(["run", "-n", &s.ranks.to_string(), "--bind", if s.crowded { "none" } else { "core" }, "--"]);
        c.arg(&program).args(s.dir);
        c
    };
    Ok(Contestant { name: "fmpl".into(), launch: Box::new(launch), one: None })
}
