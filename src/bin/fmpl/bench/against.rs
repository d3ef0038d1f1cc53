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
pub fn ours_in_part(name: &str) -> Contestant {
    fmpl_run(name, &[], false)
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
        c.arg(&me).args(["bench", "--indices", &s.indices.to_string()]);
        match s.dir {
            Some(dir) => c.arg("--rank").arg(dir),
            None => c.arg("--startup"),
        };
        c.envs(settings.iter().map(|(k, v)| (k, v)));
        c
    };
    Contestant { name: name.into(), launch: Box::new(launch), one: None }
}

struct Mpi {
    name: &'static str,
    /// Compilers and launchers to look for, in this order, and what the launcher's `--version` says when it is the right one.
    compilers: &'static [&'static str],
    /// How a compiler tells whose it is, and what it says.
    compiler_is: (&'static str, &'static str),
    launchers: &'static [&'static str],
    version: &'static [&'static str],
    pinned: &'static [&'static str],
    crowded: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// The compiled program is the same as this one's.
    twin: &'static str,
    /// What links Debian's ScaLAPACK for it.
    scalapack: &'static str,
}

const OPENMPI_ENV: &[(&str, &str)] = &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

static MPIS: &[Mpi] = &[
    Mpi {
        name: "openmpi",
        compilers: &["mpicc.openmpi", "mpicc"],
        compiler_is: ("--showme:version", "Open MPI"),
        launchers: &["mpirun.openmpi", "mpirun"],
        version: &["Open MPI", "OpenRTE"],
        pinned: &["--bind-to", "core"],
        crowded: &["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"],
        env: OPENMPI_ENV,
        twin: "openmpi",
        scalapack: "-lscalapack-openmpi",
    },
    Mpi {
        name: "openmpi-ucx",
        compilers: &["mpicc.openmpi", "mpicc"],
        compiler_is: ("--showme:version", "Open MPI"),
        launchers: &["mpirun.openmpi", "mpirun"],
        version: &["Open MPI", "OpenRTE"],
        pinned: &[
            "--bind-to",
            "core",
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
        ],
        crowded: &[
            "--oversubscribe",
            "--bind-to",
            "none",
            "--mca",
            "mpi_yield_when_idle",
            "1",
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
        ],
        env: OPENMPI_ENV,
        twin: "openmpi",
        scalapack: "-lscalapack-openmpi",
    },
    Mpi {
        name: "mpich",
        compilers: &["mpicc.mpich", "mpicc"],
        compiler_is: ("-v", "MPICH"),
        launchers: &["mpiexec.mpich", "mpiexec.hydra", "mpiexec"],
        version: &["HYDRA", "MPICH"],
        pinned: &["-bind-to", "core"],
        crowded: &[],
        env: &[],
        twin: "mpich",
        scalapack: "-lscalapack-mpich",
    },
];

/// The contestants named, compiled; `all` are those that are found. Naming one that is not here is an error.
/// For `blacs` their BLACS, by the program of that benchmark; for `rma` UCX too.
pub fn rivals(names: &[String], place: &Path, bench: &str) -> Result<Vec<Contestant>, String> {
    let (blacs, rma) = (bench == super::blacs::BENCH.name, bench == super::rma::BENCH.name);
    let all = names.iter().any(|n| n == "all");
    let ucx = rma && (all || names.iter().any(|n| n == "ucx"));
    if let Some(n) = names.iter().find(|n| *n != "all" && !(ucx && *n == "ucx") && !MPIS.iter().any(|m| m.name == **n))
    {
        let known: Vec<&str> = MPIS.iter().map(|m| m.name).chain(rma.then_some("ucx")).collect();
        return Err(format!("--against {n}: there are {} and all", known.join(", ")));
    }
    let mut found = Vec::new();
    for mpi in MPIS.iter().filter(|m| all || names.iter().any(|n| n == m.name)) {
        match rival(mpi, place, blacs) {
            Ok(c) => found.push(c),
            Err(e) if all => eprintln!("fmpl bench: left out: {e}"),
            Err(e) => return Err(e),
        }
    }
    match ucx.then(super::ucx::rival) {
        Some(Ok(c)) => found.push(c),
        Some(Err(e)) if all => eprintln!("fmpl bench: left out: {e}"),
        Some(Err(e)) => return Err(e),
        None => {}
    }
    if all && found.is_empty() {
        return Err("--against all: no MPI was found on this machine".into());
    }
    Ok(found)
}

fn rival(mpi: &'static Mpi, place: &Path, blacs: bool) -> Result<Contestant, String> {
    let is_it = |launcher: &&&str| {
        output_of(launcher, &["--version"]).is_some_and(|text| mpi.version.iter().any(|v| text.contains(v)))
    };
    let Some(launcher) = mpi.launchers.iter().find(is_it) else {
        return Err(format!("{}: no launcher found (looked for {})", mpi.name, mpi.launchers.join(", ")));
    };
    let (kind, source) = if blacs { ("blacs", super::blacs::SOURCE) } else { ("peer", include_str!("peer.c")) };
    let link: &[&str] = if blacs { &[mpi.scalapack, "-lm"] } else { &[] };
    let program = place.join(format!("{kind}-{}", mpi.twin));
    if !program.exists() {
        let mut tried = vec![format!("no compiler found (looked for {})", mpi.compilers.join(", "))];
        let (ask, says) = mpi.compiler_is;
        // A plain `mpicc` belongs to whatever MPI is the default: it is asked whose it is.
        let his = mpi.compilers.iter().filter(|cc| output_of(cc, &[ask]).is_some_and(|text| text.contains(says)));
        let made = his.into_iter().any(|cc| match compile_with(cc, source, &program, link) {
            Ok(()) => true,
            Err(e) => {
                tried.push(e);
                false
            }
        });
        if !made {
            return Err(format!("{}: {}", mpi.name, tried.last().map_or("", |t| t)));
        }
    }
    let launch = move |s: &Start| {
        let mut c = Command::new(launcher);
        c.envs(mpi.env.iter().copied());
        c.args(["-n", &s.ranks.to_string()]).args(if s.crowded { mpi.crowded } else { mpi.pinned });
        c.arg(&program);
        match s.dir {
            Some(dir) => c.arg(dir),
            None => c.args(["-", "startup"]),
        };
        c
    };
    Ok(Contestant { name: mpi.name.into(), launch: Box::new(launch), one: None })
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
