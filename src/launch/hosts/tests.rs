//! Lists of hosts by example, and any text.

use super::*;
use proptest::prelude::*;

/// `a:4/8`: slots, and at most so many.
fn shown(hosts: &[Host]) -> String {
    let one = |h: &Host| {
        let slots = h.slots.map_or(String::new(), |n| format!(":{n}"));
        format!("{}{slots}{}", h.name, h.most.map_or(String::new(), |n| format!("/{n}")))
    };
    hosts.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn lists() {
    for (text, hosts) in [
        ("a:4,b", "a:4 b"),
        ("a", "a"),
        (" a , me@b.example.org:2,", "a me@b.example.org:2"),
        ("a,b,a", "a:2 b"),
        ("a:3,a:2", "a:5"),
        ("10.0.0.1:2,[fe80::1%eth0]:4,fe80::2", "10.0.0.1:2 fe80::1%eth0:4 fe80::2"),
    ] {
        assert_eq!(of_list(text).map(|h| shown(&h)).as_deref(), Ok(hosts), "{text}");
    }
    for (text, says) in [
        ("", "names no host"),
        (",", "names no host"),
        ("a:0", "no number of slots"),
        ("a:many", "no number of slots"),
        ("-oProxyCommand=x", "cannot be the name"),
        ("a;reboot", "cannot be the name"),
        ("a b", "cannot be the name"),
        ("[a", "cannot be the name"),
        ("[a]x", "is no host"),
    ] {
        let e = of_list(text).unwrap_err();
        assert!(e.contains(says), "{text}: {e}");
    }
}

#[test]
fn files_of_both_kinds() {
    for (text, hosts) in [
        ("a:4\nb\n", "a:4 b"),
        ("# all\n\na slots=4 max_slots=8 # big\n  b\tslots = 2\nc max-slots=3", "a:4/8 b:2 c/3"),
        ("a user=me slots=2\nb cpus=3", "me@a:2 b:3"),
        ("a\na\nb\na", "a:3 b"),
        ("a slots=1\r\nb slots=2\r\n", "a:1 b:2"),
    ] {
        assert_eq!(of_file(text).map(|h| shown(&h)).as_deref(), Ok(hosts), "{text}");
    }
    for (text, says) in [
        ("#\n", "the hostfile names no host"),
        ("a\nb slots=x", "line 2: slots=x: \"x\" is no number"),
        ("a ifname=ib0", "line 1: \"ifname=ib0\": a host has"),
        ("a slots=4 max_slots=2", "more than max_slots"),
        ("a 4", "line 1: \"4\""),
    ] {
        let e = of_file(text).unwrap_err();
        assert!(e.contains(says), "{text}: {e}");
    }
}

#[test]
fn batch_systems() {
    let given = |vars: &[(&str, &str)], file: &str| {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        let read =
            |path: &OsStr| if path == "/f" { Ok(file.to_owned()) } else { Err(std::io::ErrorKind::NotFound.into()) };
        of_batch_system(var, read).map(|found| found.map(|(from, hosts)| format!("{from}: {}", shown(&hosts))))
    };
    for (vars, file, found) in [
        (&[][..], "", None),
        (
            &[("SLURM_JOB_NODELIST", "n[01-03,7],m"), ("SLURM_TASKS_PER_NODE", "2(x3),1,4")],
            "",
            Some("SLURM_JOB_NODELIST: n01:2 n02:2 n03:2 n7:1 m:4"),
        ),
        (&[("SLURM_JOB_NODELIST", "a,b")], "", Some("SLURM_JOB_NODELIST: a b")),
        (
            &[("SLURM_JOB_NODELIST", "a,b"), ("SLURM_JOB_CPUS_PER_NODE", "8(x2)")],
            "",
            Some("SLURM_JOB_NODELIST: a:8 b:8"),
        ),
        (&[("PBS_NODEFILE", "/f")], "a\na\nb\na\n", Some("PBS_NODEFILE: a:3 b:1")),
        (&[("LSB_DJOB_HOSTFILE", "/f"), ("LSB_MCPU_HOSTS", "x 1")], "a\nb\nb\n", Some("LSB_DJOB_HOSTFILE: a:1 b:2")),
        (&[("LSB_MCPU_HOSTS", "a 4 b 2")], "", Some("LSB_MCPU_HOSTS: a:4 b:2")),
        (&[("PE_HOSTFILE", "/f")], "a 4 all.q@a UNDEFINED\nb 2 all.q@b 0,0\n", Some("PE_HOSTFILE: a:4 b:2")),
    ] {
        assert_eq!(given(vars, file), Ok(found.map(str::to_owned)), "{vars:?}");
    }
    for (vars, says) in [
        (&[("PBS_NODEFILE", "/gone")][..], "PBS_NODEFILE=/gone: "),
        (&[("PBS_NODEFILE", "/f")], "names no host"),
        (&[("LSB_MCPU_HOSTS", "a 4 b")], "\"b\" has no number"),
        (&[("SLURM_JOB_NODELIST", "n[1-")], "not understood"),
        (&[("SLURM_JOB_NODELIST", "n[3-1]")], "not understood"),
        (&[("SLURM_JOB_NODELIST", "n[1-99999999]")], "not understood"),
        (&[("SLURM_JOB_NODELIST", "a,b"), ("SLURM_TASKS_PER_NODE", "2(x3)")], "each of 2 nodes"),
    ] {
        let e = given(vars, "\n").unwrap_err();
        assert!(e.contains(says), "{vars:?}: {e}");
    }
}

#[test]
fn names_of_slurm() {
    for (list, all) in [
        ("n1", "n1"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("r[0-1]n[1,3-4]-ib,x", "r0n1-ib r0n3-ib r0n4-ib r1n1-ib r1n3-ib r1n4-ib x"),
    ] {
        assert_eq!(slurm_names(list).unwrap().join(" "), all);
    }
}

#[test]
fn ranks_and_hosts() {
    let wanted = |n: u32| Wanted { n: (n > 0).then_some(n), ..Wanted::default() };
    let more = |n| Wanted { oversubscribe: true, ..wanted(n) };
    let turn = |n| Wanted { in_turn: true, ..wanted(n) };
    let each = |n, each| Wanted { each: Some(each), ..wanted(n) };
    for (hosts, w, ranks) in [
        ("a:2,b:3", wanted(0), "0 1|2 3 4"),
        ("a:2,b:3", wanted(3), "0 1|2"),
        ("a:2,b:3", wanted(1), "0|"),
        ("a,b", wanted(0), "0|1"),
        ("a,b", wanted(5), "0 1 2|3 4"),
        ("a:2,b", wanted(0), "0 1|2"),
        ("a:2,b:1", more(7), "0 1 2 3 4|5 6"),
        ("a:2,b:3", turn(0), "0 2|1 3 4"),
        ("a,b", turn(5), "0 2 4|1 3"),
        ("a,b", each(0, 2), "0 1|2 3"),
        ("a:4,b:4", each(3, 2), "0 1|2"),
    ] {
        let of = ranks_of(&of_list(hosts).unwrap(), w).unwrap();
        let text = of.iter().map(|r| r.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
        assert_eq!(text.join("|"), ranks, "{hosts} {w:?}");
    }
    for (hosts, w, says) in [
        ("a:2 ,b:3", wanted(6), "6 ranks on 5 slots: --oversubscribe"),
        ("a:2,b:3", each(0, 3), "3 ranks on each host, and a has 2 slots"),
        ("a,b", each(5, 2), "5 ranks on 4 slots"),
    ] {
        let e = ranks_of(&of_list(hosts).unwrap(), w).unwrap_err();
        assert!(e.contains(says), "{hosts}: {e}");
    }
    let few = of_file("a slots=1 max_slots=2\nb slots=1 max_slots=2").unwrap();
    assert_eq!(ranks_of(&few, more(4)).unwrap(), [[0, 1], [2, 3]]);
    assert!(ranks_of(&few, more(5)).unwrap_err().contains("max_slots"));
}

proptest! {
    #[test]
    fn any_text_is_a_list_or_not(text in "[-a-c0-3:,\\[\\]()x= #\n@]{0,40}") {
        for found in [of_list(&text), of_file(&text), of_slurm(&text, None), of_slurm("a,b,c", Some(&text)), of_pairs(&text)] {
            let sound = |h: &Host| !h.name.is_empty() && !h.name.starts_with('-') && h.slots != Some(0);
            prop_assert!(found.is_err() || found.is_ok_and(|all| !all.is_empty() && all.iter().all(sound)));
        }
    }

    /// Every rank is on one host, no host has more than it may, and the blocks are in order.
    #[test]
    fn every_rank_has_a_host(
        hosts in proptest::collection::vec((proptest::option::of(1u32..6), proptest::option::of(6u32..9)), 1..8),
        n in 0u32..40, each in proptest::option::of(1u32..5), in_turn: bool, oversubscribe: bool,
    ) {
        let host = |(i, (slots, most)): (usize, &(Option<u32>, Option<u32>))| Host { name: format!("h{i}"), slots: *slots, most: *most };
        let hosts: Vec<Host> = hosts.iter().enumerate().map(host).collect();
        let wanted = Wanted { n: (n > 0).then_some(n), each, in_turn, oversubscribe };
        if let Ok(of) = ranks_of(&hosts, wanted) {
            let mut all = of.concat();
            if !in_turn {
                prop_assert!(all.is_sorted());
            }
            all.sort_unstable();
            prop_assert!(n == 0 || all.len() as u32 == n);
            prop_assert_eq!(all, (0..of.iter().map(Vec::len).sum::<usize>() as u32).collect::<Vec<_>>());
            prop_assert!(of.iter().zip(&hosts).all(|(r, h)| r.len() as u32 <= h.most.unwrap_or(u32::MAX)));
        }
    }

    #[test]
    fn names_come_back_from_slurms_brackets(numbers in proptest::collection::btree_set(0u32..200, 1..20), width in 1usize..4) {
        let names: Vec<String> = numbers.iter().map(|n| format!("n{n:0width$}x")).collect();
        let inside: Vec<String> = numbers.iter().map(|n| format!("{n:0width$}")).collect();
        prop_assert_eq!(slurm_names(&format!("n[{}]x", inside.join(","))).unwrap(), names);
    }
}
