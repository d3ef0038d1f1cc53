use super::*;

/// A rank in bash: `ask LINE` sends a line and prints the answer.
const ASK: &str = r#"ask() { echo "$1" >&$PMI_FD; read -r -t 20 answer <&$PMI_FD; echo "rank $PMI_RANK: $answer"; }
hello="cmd=init pmi_version=1 pmi_subversion=1"; "#;

fn bash(n: &str, options: &[&str], script: &str) -> Ran {
    let script = format!("{ASK}{script}");
    run(&[&["-n", n], options, &["--", "bash", "-c", &script]].concat())
}

#[test]
fn ranks_find_each_other() {
    for (n, bytes) in [("1", "0"), ("4", "100"), ("7", "5000")] {
        let r = run(&["-n", n, "--", &place(), bytes]);
        assert_eq!(r.code, 0, "{}", r.err);
        let here = (0..n.parse().unwrap()).map(|r: u32| r.to_string()).collect::<Vec<_>>().join(", ");
        let expected = format!("of {n}, here [{here}], {bytes} bytes of each read");
        assert_eq!(r.out.lines().filter(|l| l.ends_with(&expected)).count(), n.parse::<usize>().unwrap(), "{}", r.out);
    }
}

#[test]
fn a_program_started_by_nobody_is_a_job_of_one() {
    let o = Command::new(place()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&o.stdout), "rank 0 of 1, here [0], 100 bytes of each read\n");
}

#[test]
fn a_stale_descriptor_is_named() {
    for (fd, says) in [
        ("77", "PMI_FD=77 is not an open socket"),
        ("0", "PMI_FD=0 is not an open socket"),
        ("x", "PMI_FD=x is not a number"),
    ] {
        let mut c = Command::new(place());
        let o = c.stdin(Stdio::null()).env("PMI_FD", fd).env("PMI_RANK", "0").env("PMI_SIZE", "2").output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(!o.status.success() && err.contains(says), "{err}");
    }
    let o = Command::new(place()).env("PMI_FD", "3").env("PMI_RANK", "2").env("PMI_SIZE", "2").output().unwrap();
    assert!(String::from_utf8_lossy(&o.stderr).contains("PMI_RANK=2 of PMI_SIZE=2"));
}

#[test]
fn abort_ends_the_job_with_its_code() {
    let r = run(&["-n", "3", "--", &place(), "10", "77"]);
    assert_eq!(r.code, 77, "{}", r.err);
    assert!(r.err.contains("rank 0 (pid ") && r.err.contains("aborted the job with exit code 77"), "{}", r.err);
    // Whose eight bits say that all went well.
    let r = run(&["-n", "3", "--", &place(), "10", "512"]);
    assert_eq!(r.code, 1, "{}", r.err);
    // The same said by an MPI.
    let r = bash("2", &[], "ask \"$hello\"; [ $PMI_RANK = 1 ] || ask 'cmd=abort exitcode=256'; sleep 20");
    assert_eq!(r.code, 1, "{}", r.err);
}

#[test]
fn leaving_without_finalize_is_a_failure() {
    let r = bash("2", &[], "ask \"$hello\"; [ $PMI_RANK = 1 ] || ask cmd=finalize");
    assert_eq!(r.code, 1, "{}", r.err);
    assert!(r.err.contains("rank 1 (pid") && r.err.contains("exited with code 0 without finalize"), "{}", r.err);
    let r = bash("2", &[], "ask \"$hello\"; ask cmd=finalize");
    assert_eq!((r.code, r.err.as_str()), (0, ""));
}

#[test]
fn garbage_cuts_off_the_rank_that_sent_it_and_nobody_else() {
    for garbage in [
        "echo hello",
        "head -c 100000 /dev/zero",
        "head -c 100000 /dev/urandom",
        "echo cmd=finalize",
        "printf 'cmd=init pmi_version=x\\n'",
    ] {
        let script = format!(
            "if [ $PMI_RANK = 1 ]; then {{ {garbage}; }} >&$PMI_FD 2>/dev/null; sleep 0.1; exit 0; fi; ask \"$hello\"; ask cmd=barrier_in; ask cmd=finalize"
        );
        let r = bash("3", &["--keep-going"], &script);
        assert_eq!(r.code, 1, "{garbage}: {} {}", r.out, r.err);
        assert!(r.err.contains("rank 1 (pid") && r.err.contains("not PMI-1; it was cut off"), "{garbage}: {}", r.err);
        assert!(r.err.len() < 2000, "{}", r.err.len());
        for rank in [0, 2] {
            // Which of the two ways it goes depends on who comes first: the other rank may have left after its failed fence.
            assert!(r.out.contains(&format!("rank {rank}: cmd=barrier_out rc=-1 msg=rank_")), "{garbage}: {}", r.out);
            assert!(r.out.contains(&format!("rank {rank}: cmd=finalize_ack")), "{garbage}: {}", r.out);
        }
    }
}

#[test]
fn survivors_of_a_dead_rank_do_not_wait_for_it() {
    let script = "ask \"$hello\"; [ $PMI_RANK = 2 ] && kill -9 $$; ask cmd=barrier_in; ask cmd=finalize";
    let r = bash("3", &["--keep-going"], script);
    assert_eq!(r.code, 137, "{}", r.err);
    for rank in [0, 1] {
        assert!(r.out.contains(&format!("rank {rank}: cmd=barrier_out rc=-1 msg=rank_")), "{}", r.out);
    }
}

#[test]
fn a_rank_that_asks_much_and_reads_nothing_does_no_harm() {
    let flood = "for i in $(seq 20000); do echo cmd=get_maxes; done >&$PMI_FD & sleep 0.3; kill %1; exit 0";
    let script = format!(
        "ask \"$hello\"; if [ $PMI_RANK = 1 ]; then {flood}; fi; sleep 0.1; ask \"cmd=get key=no\"; ask cmd=finalize"
    );
    let r = bash("2", &["--keep-going"], &script);
    assert!(
        r.out.contains("rank 0: cmd=get_result rc=-1 msg=key_no_not_found")
            && r.out.contains("rank 0: cmd=finalize_ack"),
        "{}",
        r.out
    );
    assert_eq!(r.code, 1, "{}", r.err);
}

#[test]
fn mpich_starts_our_programs() {
    let Some(mpiexec) = found("mpiexec.mpich").or_else(|| found("mpiexec.hydra")) else {
        crate::skip::skip("MPICH's mpiexec (Debian package mpich) is not installed");
        return;
    };
    let hydra = |n: &str, args: &[&str]| {
        let mut c = Command::new("timeout");
        ran(c.arg("60").arg(&mpiexec).args(["-n", n, &place()]).args(args).stdin(Stdio::null()).output().unwrap())
    };
    // One piece, exactly at the limit of a value, many pieces.
    for bytes in ["3", "505", "506", "507", "4000"] {
        let r = hydra("3", &[bytes]);
        assert_eq!(r.code, 0, "{}", r.err);
        let expected = format!("of 3, here [0, 1, 2], {bytes} bytes of each read");
        assert_eq!(r.out.lines().filter(|l| l.ends_with(&expected)).count(), 3, "{}", r.out);
    }
    assert_eq!(hydra("2", &["10", "33"]).code, 33);
}

#[test]
fn our_launcher_starts_mpich_programs() {
    let Some(mpicc) = found("mpicc.mpich") else {
        crate::skip::skip("MPICH's mpicc (Debian package libmpich-dev) is not installed");
        return;
    };
    if !std::path::Path::new("/dev/shm").exists() {
        return crate::skip::skip("MPICH needs /dev/shm");
    }
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (dir.join("sum.c"), dir.join("sum"));
    let text = r#"#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int r, n, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Comm_size(MPI_COMM_WORLD, &n);
  MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d of %d: %d\n", r, n, sum);
  return MPI_Finalize();
}"#;
    std::fs::write(&source, text).unwrap();
    assert!(Command::new(mpicc).arg(&source).arg("-o").arg(&program).status().unwrap().success());
    let r = run(&["-n", "3", program.to_str().unwrap()]);
    let mut lines: Vec<_> = r.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 of 3: 3", "1 of 3: 3", "2 of 3: 3"], "{}", r.err);
    assert_eq!(r.code, 0, "{}", r.err);
}
