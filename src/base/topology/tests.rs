use super::*;
use proptest::prelude::*;

fn of(text: &str, nodes: u32) -> Topology {
    Topology::parse(text, nodes).unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn levels_are_read() {
    let blocks = of("blocks:4,16", 40);
    assert_eq!((blocks.levels(), blocks.distance(0, 3), blocks.distance(3, 4), blocks.distance(15, 16)), (2, 0, 1, 2));
    let brackets = of("((0-3)(4,6)) ((5,7-9))", 10);
    assert_eq!(brackets.levels(), 2);
    let distances = [(0, 3), (4, 6), (3, 6), (5, 9), (4, 5), (9, 0)].map(|(a, b)| brackets.distance(a, b));
    assert_eq!(distances, [0, 0, 1, 0, 2, 2]);
    assert_eq!(of("(0-1)(2-3)", 4).distance(1, 2), 1);
    let path = std::env::temp_dir().join(format!("topology-{}", std::process::id()));
    std::fs::write(&path, "# two spines\n0-3 a/x\n4,6 a/y   # not 5\n5  b/x\n7-9\tb/x\n").unwrap();
    let file = of(&format!("file:{}", path.display()), 10);
    for (a, b) in (0..10).flat_map(|a| (0..10).map(move |b| (a, b))) {
        assert_eq!(file.distance(a, b), brackets.distance(a, b), "{a} and {b}");
    }
    std::fs::write(&path, "0-3 a/x\n4 b\n").unwrap();
    let wrong = Topology::parse(&format!("file:{}", path.display()), 5).unwrap_err();
    assert!(wrong.contains("node 4 is below 1 levels"), "{wrong}");
    std::fs::write(&path, "0-3 a/x\nfour a/x\n").unwrap();
    let wrong = Topology::parse(&format!("file:{}", path.display()), 5).unwrap_err();
    assert!(wrong.contains("line 2: \"four\" is no node"), "{wrong}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    for (text, why) in [
        ("", "no node"),
        ("4,16", "it is blocks:4,16, or file:"),
        ("blocks:", "numbers of nodes"),
        ("blocks:4,6", "switches of 6 nodes cannot consist of switches of 4"),
        ("blocks:0", "numbers of nodes"),
        ("blocks:8,4", "cannot consist"),
        ("(0-3)(3-7)", "node 3 is named twice"),
        ("(0-2)(4-7)", "node 3 is below no switch"),
        ("(0-3)", "node 4 of 8 is below no switch"),
        ("(0-8)", "node 8 is named, and the job has 8"),
        ("(0-3)((4-7))", "node 4 is below 2 levels of switches, node 0 below 1"),
        ("(0-3)(4-7", "not closed"),
        ("(0-3)4-7)", "it is blocks"),
        ("(0-3))(4-7)", "character 6"),
        ("(0-x)(4-7)", "\"0-x\" is no node"),
        ("(5-3)", "is no node"),
        ("file:/nowhere/at/all", "/nowhere/at/all: "),
    ] {
        let wrong = Topology::parse(text, 8).expect_err(text);
        assert!(wrong.contains(why), "{text}: {wrong}");
    }
}

/// Messages of a tree that leave a switch of a level, and switches of that level with members.
fn crossings(t: &Topology, nodes: &[u32], edges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let switches = |level: usize| {
        let path = |node: u32| (0..=level).map(|l| t.switch(l, node)).collect::<Vec<_>>();
        nodes.iter().map(|n| path(*n)).collect::<std::collections::BTreeSet<_>>().len()
    };
    let leave = |level: usize| {
        let up = |(a, b): &&(usize, usize)| (0..=level).any(|l| t.switch(l, nodes[*a]) != t.switch(l, nodes[*b]));
        edges.iter().filter(up).count()
    };
    (0..t.levels()).map(|level| (leave(level), switches(level))).collect()
}

proptest! {
    /// A tree reaches everybody once, goes into each switch of each level once, and is not deep.
    #[test]
    fn trees_reach_each_switch_once(
        sizes in proptest::collection::vec(1u32..5, 1..4),
        members in proptest::collection::btree_set(0u32..120, 1..60),
        root in any::<prop::sample::Index>(),
        turn in any::<bool>(),
    ) {
        let mut size = 1;
        let text: Vec<String> = sizes.iter().map(|k| { size *= k + 1; size.to_string() }).collect();
        let t = of(&format!("blocks:{}", text.join(",")), 120);
        let mut nodes: Vec<u32> = members.into_iter().collect();
        if turn {
            // Those below one switch are no neighbours.
            nodes.sort_by_key(|n| (n % 7, *n));
        }
        let (n, root) = (nodes.len(), root.index(nodes.len()));
        let all: Vec<Branches> = (0..n).map(|me| t.branches(&nodes, root, me)).collect();
        let edges: Vec<(usize, usize)> = (0..n).flat_map(|me| all[me].children.iter().map(move |c| (me, *c))).collect();
        prop_assert_eq!(edges.len(), n - 1);
        for (parent, child) in &edges {
            prop_assert_eq!(all[*child].parent, Some(*parent));
        }
        prop_assert_eq!(all[root].parent, None);
        for me in 0..n {
            let (mut at, mut depth) = (me, 0);
            while let Some(parent) = all[at].parent {
                (at, depth) = (parent, depth + 1);
                prop_assert!(depth <= n);
            }
            prop_assert_eq!(at, root);
            prop_assert!(depth <= (t.levels() + 1) * (usize::BITS - n.leading_zeros()) as usize);
        }
        for (crossed, switches) in crossings(&t, &nodes, &edges) {
            prop_assert_eq!(crossed, switches - 1);
        }
        // A chain in this order does the same.
        let order = t.order(&nodes, root);
        prop_assert_eq!(order[0], root);
        let chain: Vec<(usize, usize)> = order.windows(2).map(|two| (two[0], two[1])).collect();
        for (crossed, switches) in crossings(&t, &nodes, &chain) {
            prop_assert_eq!(crossed, switches - 1);
        }
    }

    /// Places are even at each level, and the nearest have what is over.
    #[test]
    fn places_are_even_below_each_switch(here in 0u32..32, places in 1usize..40) {
        let t = of("blocks:4,16", 32);
        let found = t.spread((0..32).filter(|n| *n != here), here, places);
        prop_assert_eq!(found.len(), places);
        prop_assert!(!found.contains(&here));
        for level in 0..2 {
            let mut count = std::collections::BTreeMap::new();
            for switch in 0..32 {
                count.entry(t.switch(level, switch)).or_insert(0usize);
            }
            found.iter().for_each(|n| *count.get_mut(&t.switch(level, *n)).unwrap() += 1);
            let (least, most) = (count.values().min().unwrap(), count.values().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", count);
            prop_assert_eq!(count[&t.switch(level, here)], *most);
        }
    }
}
