//! A program that looks at no code, and whose finalize has failed, fails under every launcher, and says why. (In Rust: `rust_api`.)

use super::*;

/// Rank 0 has ended as it would have, and said what was left; whether rank 1 came so far is not asked, the launcher ends it.
fn failed(r: &Ran, how: &str) {
    assert!(r.code == 1, "{how}: exit code {}: {}{}", r.code, r.out, r.err);
    let says = ["finalize has failed", "peer 1, index 1"].iter().all(|w| r.err.contains(w));
    assert!(says && r.out.contains("rank 0 goes on, at the end"), "{how}: {}{}", r.out, r.err);
}

#[test]
fn a_finalize_that_fails_makes_the_exit_code_non_zero() {
    let Some(cc) = found("cc") else { return crate::skip::skip("there is no C compiler") };
    let source = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launch/finalize").join(name);
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/fmpl.f90");
    let mut programs = vec![beside::compiled(&cc, &[source("left.c")], "left")];
    match found("gfortran") {
        Some(f) => programs.push(beside::compiled(&f, &[module, source("left.f90")], "left-fortran")),
        None => crate::skip::note("fortran", "there is no gfortran"),
    }
    for program in &programs {
        let program = program.to_str().unwrap();
        failed(&run(&["-n", "2", "--", program]), "fmpl run");
        failed(&run(&["-H", "localhost:2", "--", program]), "fmpl run -H");
        let mpich = found("mpiexec.mpich").map(|p| vec![p.to_str().unwrap().to_owned(), "-n".into()]);
        for launcher in launchers::launchers().into_iter().chain(mpich) {
            failed(&launchers::started(&launcher, "2", &[program], &[]), &launcher[0]);
        }
    }
    let program = programs[0].to_str().unwrap();
    assert_eq!(run(&["-n", "2", "--", program, "5"]).code, 5, "a code that the program has chosen stays");
    for mpi in launchers::PMI {
        let Some(r) = launchers::slurm("2", &format!("srun -N 2 -n 2 --mpi={mpi} {program}")) else { return };
        failed(&r, &format!("srun --mpi={mpi}"));
    }
}
