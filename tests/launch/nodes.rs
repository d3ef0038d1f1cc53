use super::*;

/// What each rank of the example `place` says of who is on its node.
fn neighbours(out: &str, size: usize) -> Vec<String> {
    let mut of = vec![String::new(); size];
    for line in out.lines().filter(|l| l.starts_with("rank ")) {
        let rank: usize = line["rank ".len()..].split(' ').next().unwrap().parse().unwrap();
        of[rank] = line[line.find('[').unwrap()..=line.find(']').unwrap()].to_owned();
    }
    of
}

#[test]
fn pretended_nodes_in_blocks_and_in_turn() {
    let r = run(&["-n", "5", "--nodes", "2", "--", &place(), "3"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(neighbours(&r.out, 5), ["[0, 1, 2]", "[0, 1, 2]", "[0, 1, 2]", "[3, 4]", "[3, 4]"]);
    let r = run(&["-n", "5", "--nodes", "2:cyclic", "--", &place(), "3"]);
    assert_eq!(neighbours(&r.out, 5), ["[0, 2, 4]", "[1, 3]", "[0, 2, 4]", "[1, 3]", "[0, 2, 4]"], "{}", r.err);
    // More than two levels of gathering, and the variable of one program only.
    let r = run(&["-n", "70", "--", &place(), "3", ":", "-n", "2", "--env", "FMPL_NODE=9", "--", &place(), "3"]);
    assert_eq!(r.code, 0, "{}", r.err);
    let of = neighbours(&r.out, 72);
    assert!(of[0].starts_with("[0, 1, ") && of[69].ends_with(", 68, 69]"), "{of:?}");
    assert_eq!((of[70].as_str(), of[71].as_str()), ("[70, 71]", "[70, 71]"));
}

#[test]
fn a_wrong_number_of_nodes_is_refused() {
    let r = run(&["-n", "2", "--nodes", "0", "--", "true"]);
    assert!(r.code == 2 && r.err.contains("a number of nodes above 0"), "{}", r.err);
    let r = run(&["-n", "2", "--env", "FMPL_NODE=left", "--", &place()]);
    assert!(r.code != 0 && r.err.contains("FMPL_NODE=left: possible values"), "{}", r.err);
}

#[test]
fn mpich_starts_ranks_on_pretended_nodes() {
    let Some(mpiexec) = found("mpiexec.mpich").or_else(|| found("mpiexec.hydra")) else {
        crate::skip::skip("MPICH's mpiexec (Debian package mpich) is not installed");
        return;
    };
    let mut c = Command::new("timeout");
    c.arg("60").arg(&mpiexec);
    for (k, part) in ["0", "1", "0"].iter().enumerate() {
        c.args(if k > 0 { &[":"][..] } else { &[] }).args(["-n", "2", "-env", "FMPL_NODE", part, &place(), "3"]);
    }
    let r = ran(c.stdin(Stdio::null()).output().unwrap());
    assert_eq!(r.code, 0, "{}", r.err);
    assert_eq!(
        neighbours(&r.out, 6),
        ["[0, 1, 4, 5]", "[0, 1, 4, 5]", "[2, 3]", "[2, 3]", "[0, 1, 4, 5]", "[0, 1, 4, 5]"]
    );
}
