//! MPI and FMPL in one process, in every order of beginning and end, and ranks that the program brings itself.
//!
//! The MPIs are Debian's, and those whose directories (with `bin/mpicc` and `bin/mpiexec`) stand in FMPL_TEST_MPIS, with colons between.

use super::*;

/// How an MPI compiles and starts programs.
struct Mpi {
    mpicc: PathBuf,
    mpiexec: PathBuf,
}

fn mpis() -> Vec<Mpi> {
    let debian = [("mpicc.mpich", "mpiexec.mpich"), ("mpicc.openmpi", "mpirun.openmpi")];
    let mut all: Vec<Mpi> =
        debian.into_iter().filter_map(|(cc, run)| Some(Mpi { mpicc: found(cc)?, mpiexec: found(run)? })).collect();
    for place in std::env::var_os("FMPL_TEST_MPIS").iter().flat_map(std::env::split_paths) {
        all.push(Mpi { mpicc: place.join("bin/mpicc"), mpiexec: place.join("bin/mpiexec") });
    }
    all
}

/// FMPL as it is installed.
fn installed() -> PathBuf {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("beside");
    ONCE.call_once(|| {
        let o = Command::new(env!("CARGO_BIN_EXE_fmpl")).arg("install").arg("--prefix").arg(&prefix).output().unwrap();
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    });
    prefix
}

/// The program, compiled by this MPI's compiler.
pub(super) fn compiled(mpicc: &Path, sources: &[PathBuf], name: &str) -> PathBuf {
    let (prefix, mark) = (installed(), mpicc.to_str().unwrap().replace('/', "_"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{mark}"));
    let mut c = Command::new(mpicc);
    c.arg("-O1").args(sources).arg("-I").arg(prefix.join("include")).arg("-o").arg(&program);
    c.arg("-L").arg(prefix.join("lib")).arg("-lfmpl").arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
    let o = c.current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap();
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    program
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launch/beside").join(name)
}

fn under(mpiexec: &Path, n: &str, program: &Path, args: &[&str]) -> Ran {
    let mut c = Command::new("timeout");
    c.args(["-k", "5", "120"]).arg(mpiexec).args(["-n", n]).arg(program).args(args).envs(launchers::ROOT);
    ran(c.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn mpi_and_fmpl_begin_and_end_in_any_order() {
    let all = mpis();
    if all.is_empty() {
        return crate::skip::skip(
            "neither MPICH nor Open MPI (Debian packages libmpich-dev, libopenmpi-dev) is installed",
        );
    }
    let times: u32 = std::env::var("FMPL_TEST_TIMES").map_or(1, |n| n.parse().unwrap());
    let ms = std::env::var("FMPL_TEST_MS").unwrap_or("100".into());
    for mpi in all {
        let program = compiled(&mpi.mpicc, &[source("both.c")], "both");
        for (begin, end) in [
            ("mpi", "mpi"),
            ("mpi", "fmpl"),
            ("fmpl", "mpi"),
            ("fmpl", "fmpl"),
            ("with", "mpi"),
            ("id", "fmpl"),
            ("late", "mpi"),
            ("never", "fmpl"),
        ] {
            for time in 0..times {
                let r = under(&mpi.mpiexec, "3", &program, &[begin, end, &ms]);
                let name = format!("{} {begin} {end}, time {time}", mpi.mpiexec.display());
                assert!(
                    r.code == 0 && r.out.contains("fine: ") && r.out.contains(" 3 ranks"),
                    "{name}: {}{}",
                    r.out,
                    r.err
                );
                println!("figure: {name}: {}", r.out.trim());
            }
        }
        for begin in ["mpi", "fmpl", "with"] {
            let r = under(&mpi.mpiexec, "3", &program, &[begin, "mpi", "0", "37"]);
            assert_eq!(r.code, 37, "{} {begin}: {}{}", mpi.mpiexec.display(), r.out, r.err);
        }
    }
}

#[test]
fn fortran_brings_its_ranks() {
    let (Some(mpif90), Some(mpirun)) = (found("mpif90.openmpi"), found("mpirun.openmpi")) else {
        return crate::skip::skip(
            "Open MPI's Fortran compiler (Debian packages libopenmpi-dev, gfortran) is not installed",
        );
    };
    let module = installed().join("include/fmpl.f90");
    let module = if module.exists() { module } else { Path::new(env!("CARGO_MANIFEST_DIR")).join("include/fmpl.f90") };
    let program = compiled(&mpif90, &[module, source("outside.f90")], "outside");
    let r = under(&mpirun, "2", &program, &[]);
    assert!(r.code == 0 && r.out.contains("fine: 2 ranks"), "{}{}", r.out, r.err);
}

#[test]
fn rust_brings_its_ranks() {
    let program = example("outside");
    for how in ["exchange", "id"] {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("outside-{how}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let rank = |rank: usize| {
            let mut c = Command::new("timeout");
            c.args(["-k", "5", "60", &program, dir.to_str().unwrap(), &rank.to_string(), "3", how]);
            c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let all: Vec<Child> = [2, 0, 1].map(rank).into();
        for child in all {
            let r = ran(child.wait_with_output().unwrap());
            assert!(r.code == 0 && r.out.contains(" of 3: 3"), "{how}: {}{}", r.out, r.err);
        }
        let _ = std::fs::remove_dir_all(dir);
    }
}

#[test]
fn programs_that_look_at_no_code_are_ended_with_the_call_that_failed() {
    let Some(cc) = found("cc") else { return crate::skip::skip("there is no C compiler") };
    let program = compiled(&cc, &[source("careless.c")], "careless");
    let careless = |how: &[&str]| run(&[&["-n", "2"][..], how, &["--", program.to_str().unwrap()]].concat());
    let r = careless(&[]);
    assert!(r.code == 0 && r.out.lines().filter(|l| *l == "went on").count() == 2, "{}{}", r.out, r.err);
    let r = careless(&["--env", "FMPL_ERRORS=abort"]);
    let says = ["fmpl_send: ", "rank out of range", "FMPL_ERR_RANK", "rank "].iter().all(|w| r.err.contains(w));
    assert!(r.code == 1 && says && !r.out.contains("went on"), "{}{}", r.out, r.err);
    let r = careless(&["--env", "FMPL_ERRORS=perhaps"]);
    assert!(r.code == 0 && r.out.contains("went on"), "init has failed, which it does not look at: {}{}", r.out, r.err);
}
