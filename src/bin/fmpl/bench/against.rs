//! The contestants: FMPL, started by `fmpl run`, and the MPIs of this machine, for each of which `peer.c` is compiled on the spot and
//! started by its own launcher with the settings that its manual advises.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::session::{Contestant, Start};

/// FMPL with these settings in its environment, each rank bound to a core.
pub fn ours(name: &str, settings: &[(&str, String)]) -> Contestant {
    fmpl_run(name, settings, true)
}

/// FMPL where only some of the ranks take part: bound to fewer cores than there are ranks, they may share one while others are idle.
pub fn ours_in_part(name: &str, settings: &[(&str, String)]) -> Contestant {
    fmpl_run(name, settings, false)
}

fn fmpl_run(name: &str, settings: &[(&str, String)], bind: bool) -> Contestant {
    let settings: Vec<(String, String)> = settings.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect();
    let launch = move |s: &Start| {
        let me = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fmpl"));
        let mut c = Command::new(&me);
        c.args(["run", "-n", &s.ranks.to_string()]);
        // Otherwise if there is a core for each.
        c.args(["--bind", "core"].iter().filter(|_| bind));
        c.args(s.nodes.map(|n| format!("--nodes={n}")));
        c.arg("--");
        c.arg(&me).args([super::PART, "rank", &s.indices.to_string()]);
        c.args(s.dir);
        c.envs(settings.iter().map(|(k, v)| (k, v)));
        c
    };
    Contestant { name: name.into(), launch: Box::new(launch), one: None }
}

/// MPIs that are started in the same way.
struct Family {
    name: &'static str,
    /// Compilers and launchers to look for, in this order.
    compilers: &'static [&'static str],
    launchers: &'static [&'static str],
    /// How a compiler tells whose it is, and what it says; what the launcher's `--version` says.
    compiler_is: (&'static str, &'static str),
    launcher_is: &'static [&'static str],
    /// What pins each rank to a core, and what is advised for more ranks than cores.
    pinned: &'static [&'static str],
    crowded: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// What links Debian's ScaLAPACK for it.
    scalapack: &'static str,
}

static OPENMPI: Family = Family {
    name: "openmpi",
    compilers: &["mpicc.openmpi", "mpicc"],
    launchers: &["mpirun.openmpi", "mpirun"],
    compiler_is: ("--showme:version", "Open MPI"),
    launcher_is: &["Open MPI", "OpenRTE"],
    pinned: &["--bind-to", "core"],
    crowded: &["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"],
    env: &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")],
    scalapack: "-lscalapack-openmpi",
};

static MPICH: Family = Family {
    name: "mpich",
    compilers: &["mpicc.mpich", "mpicc"],
    launchers: &["mpiexec.mpich", "mpiexec.hydra", "mpiexec"],
    compiler_is: ("-v", "MPICH"),
    launcher_is: &["HYDRA", "MPICH"],
    pinned: &["-bind-to", "core"],
    crowded: &[],
    env: &[],
    scalapack: "-lscalapack-mpich",
};

/// Any other: it binds its ranks by itself, or they are not bound.
static OTHER: Family = Family {
    name: "mpi",
    compilers: &[],
    launchers: &["mpirun", "mpiexec"],
    compiler_is: ("", ""),
    launcher_is: &[""],
    pinned: &[],
    crowded: &[],
    env: &[],
    scalapack: "",
};

/// What makes an Open MPI send over UCX's shared memory.
const OVER_UCX: &[&str] = &[
    "--mca",
    "pml",
    "ucx",
    "--mca",
    "pml_ucx_tls",
    "any",
    "--mca",
    "pml_ucx_devices",
    "any",
    "-x",
    "UCX_TLS=self,sysv,posix,cma",
];

/// Those that have a name of their own: of which family, and whether over UCX.
static NAMED: &[(&str, &Family, bool)] =
    &[("openmpi", &OPENMPI, false), ("openmpi-ucx", &OPENMPI, true), ("mpich", &MPICH, false)];
/// UCX itself, by its own benchmark.
const UCX: &str = "ucx";

/// An MPI that was found.
struct Mpi {
    name: String,
    family: &'static Family,
    ucx: bool,
    compiler: String,
    launcher: String,
}

/// The contestants named, compiled; `all` are those that are found of those that have names. Naming one that is not here is an error.
/// For `blacs` their BLACS, by the program of that benchmark; for `rma` UCX too.
pub fn rivals(wanted: &[String], place: &Path, blacs: bool, rma: bool) -> Result<Vec<Contestant>, String> {
    let all = wanted.iter().any(|n| n == "all");
    let known = || NAMED.iter().map(|m| m.0).chain(rma.then_some(UCX));
    let named: Vec<&str> = if all { known().collect() } else { Vec::new() };
    let mut found: Vec<Contestant> = Vec::new();
    for name in named.iter().copied().chain(wanted.iter().map(|n| &n[..]).filter(|n| *n != "all")) {
        if found.iter().any(|c| c.name == name) {
            continue;
        }
        let rival = match NAMED.iter().find(|m| m.0 == name) {
            _ if rma && name == UCX => super::ucx::rival(),
            Some((_, family, ucx)) => installed(name, family, *ucx).and_then(|mpi| mpi.contestant(place, blacs)),
            None if name.contains('/') && blacs => {
                return Err(format!("--against {name}: beside the BLACS only MPIs for which the system has ScaLAPACK"));
            }
            None if name.contains('/') => by_path(name).and_then(|mpi| mpi.contestant(place, blacs)),
            None => {
                let known = known().collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "--against {name}: there are {known} and all, and any MPI by the path of its mpicc"
                ));
            }
        };
        match rival {
            Ok(mut c) => {
                // Two builds of one version.
                while found.iter().any(|other| other.name == c.name) {
                    c.name += "'";
                }
                found.push(c);
            }
            Err(e) if named.contains(&name) => eprintln!("fmpl bench: left out: {e}"),
            Err(e) => return Err(e),
        }
    }
    if all && found.is_empty() {
        return Err("--against all: no MPI was found on this machine".into());
    }
    Ok(found)
}

/// One of the system's.
fn installed(name: &str, family: &'static Family, ucx: bool) -> Result<Mpi, String> {
    let none = |what: &str, of: &[&str]| format!("{name}: no {what} found (looked for {})", of.join(", "));
    let launcher = family.launchers.iter().find(|l| family.is_launcher(l));
    let launcher = launcher.ok_or_else(|| none("launcher", family.launchers))?.to_string();
    // A plain `mpicc` belongs to whatever MPI is the default: it is asked whose it is.
    let compiler = family.compilers.iter().find(|c| family.is_compiler(c));
    let compiler = compiler.ok_or_else(|| none("compiler", family.compilers))?.to_string();
    Ok(Mpi { name: name.into(), family, ucx, compiler, launcher })
}

/// The one whose `mpicc` this is, with `+ucx` behind it if it is to be used over that; its launcher lies beside it.
fn by_path(path: &str) -> Result<Mpi, String> {
    let (compiler, ucx) = path.strip_suffix("+ucx").map_or((path, false), |p| (p, true));
    if !Path::new(compiler).is_file() {
        return Err(format!("--against {path}: there is no {compiler}"));
    }
    let family = [&OPENMPI, &MPICH].into_iter().find(|f| f.is_compiler(compiler)).unwrap_or(&OTHER);
    if ucx && !std::ptr::eq(family, &OPENMPI) {
        return Err(format!("--against {path}: only an Open MPI can be told to use UCX"));
    }
    let beside = |name: &&str| Some(Path::new(compiler).with_file_name(name).to_str()?.to_owned());
    let launchers = || family.launchers.iter().chain(OTHER.launchers);
    let none = || {
        format!(
            "--against {path}: none of {} beside it is its launcher",
            launchers().copied().collect::<Vec<_>>().join(", ")
        )
    };
    let launcher = launchers().filter_map(beside).find(|l| family.is_launcher(l)).ok_or_else(none)?;
    let text = output_of(&launcher, &["--version"]).unwrap_or_default();
    let version = text.split_whitespace().find(|w| w.contains('.') && w.starts_with(|c: char| c.is_ascii_digit()));
    let over = if ucx { "-ucx" } else { "" };
    let name = format!("{}{over}-{}", family.name, version.unwrap_or(compiler).replace('/', "-"));
    Ok(Mpi { name, family, ucx, compiler: compiler.into(), launcher })
}

impl Family {
    fn is_launcher(&self, launcher: &str) -> bool {
        output_of(launcher, &["--version"]).is_some_and(|text| self.launcher_is.iter().any(|says| text.contains(says)))
    }

    fn is_compiler(&self, compiler: &str) -> bool {
        let (ask, says) = self.compiler_is;
        output_of(compiler, &[ask]).is_some_and(|text| text.contains(says))
    }
}

impl Mpi {
    /// Compiled, unless another one is with the same compiler.
    fn contestant(self, place: &Path, blacs: bool) -> Result<Contestant, String> {
        let family = self.family;
        let (kind, source) = if blacs { ("blacs", super::blacs::SOURCE) } else { ("peer", include_str!("peer.c")) };
        let link: &[&str] = if blacs { &[family.scalapack, "-lm"] } else { &[] };
        let program = place.join(format!("{kind}{}", self.compiler.replace('/', "-")));
        if !program.exists() {
            compile_with(&self.compiler, source, &program, link).map_err(|e| format!("{}: {e}", self.name))?;
        }
        let (launcher, over): (_, &[&str]) = (self.launcher, if self.ucx { OVER_UCX } else { &[] });
        let launch = move |s: &Start| {
            let mut c = Command::new(&launcher);
            c.envs(family.env.iter().copied());
            c.args(["-n", &s.ranks.to_string()]).args(if s.crowded { family.crowded } else { family.pinned });
            c.args(over).arg(&program);
            match s.dir {
                Some(dir) => c.arg(dir),
                None => c.args(["-", "startup"]),
            };
            c
        };
        Ok(Contestant { name: self.name, launch: Box::new(launch), one: None })
    }
}

fn output_of(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

/// Compiles a C source into `program`.
pub fn compile(compiler: &str, source: &str, program: &Path) -> Result<(), String> {
    compile_with(compiler, source, program, &[])
}

/// The same, with these arguments for the linker.
pub fn compile_with(compiler: &str, source: &str, program: &Path, link: &[&str]) -> Result<(), String> {
    let file = program.with_extension("c");
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    std::fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let done = Command::new(compiler)
        .args(["-O2", "-w", "-o"])
        .arg(program)
        .arg(&file)
        .args(link)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{compiler}: {e}"))?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("{compiler}: {}", String::from_utf8_lossy(&done.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with programs that say these things, as an MPI's compiler and launcher do.
    fn pretended(name: &str, programs: &[(&str, &str)]) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let place = std::env::temp_dir().join(format!("fmpl-against-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        for (program, says) in programs {
            let path = place.join(program);
            std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    #[test]
    fn an_mpi_is_found_by_its_compiler() {
        // Two MPIs in one directory, as distributions have them: the launcher is the compiler's.
        let place = pretended(
            "two",
            &[
                ("mpicc", "mpicc: Open MPI 5.0.11 (Language: C)"),
                ("mpicc.mpich", "mpicc for MPICH version 4.0.2"),
                ("mpiexec.mpich", "HYDRA build details: Version: 4.0.2"),
                ("mpirun", "mpirun (Open MPI) 5.0.11"),
                ("mpiexec", "mpirun (Open MPI) 5.0.11"),
                ("cc", "a compiler"),
            ],
        );
        let path = |program: &str| place.join(program).to_str().unwrap().to_owned();
        let found = |program: &str| by_path(&path(program)).map(|m| (m.name, m.launcher, m.ucx));
        assert_eq!(found("mpicc"), Ok(("openmpi-5.0.11".into(), path("mpirun"), false)));
        assert_eq!(found("mpicc+ucx"), Ok(("openmpi-ucx-5.0.11".into(), path("mpirun"), true)));
        assert_eq!(found("mpicc.mpich"), Ok(("mpich-4.0.2".into(), path("mpiexec.mpich"), false)));
        for (program, says) in [("mpicc.mpich+ucx", "only an Open MPI"), ("nothing", "there is no")] {
            assert!(found(program).is_err_and(|e| e.contains(says)), "{program}");
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
}
