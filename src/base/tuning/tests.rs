use super::*;
use crate::base::config::Config;
use proptest::prelude::*;

fn amd(family: u32, model: u32) -> Processor {
    Processor { vendor: "AuthenticAMD".into(), family, model }
}

fn intel() -> Processor {
    Processor { vendor: "GenuineIntel".into(), family: 6, model: 143 }
}

fn case(processor: &Processor) -> Case<'_> {
    let take_over = Rows::shipped().take_over(processor);
    Case { processor, distance: Distance::Shared, members: 0, crowded: false, take_over, network: "" }
}

/// Every number has a value on every machine: the first section, which has no condition, says all of them.
#[test]
fn what_is_built_in_is_whole() {
    let rows = Rows::read(SHIPPED).unwrap();
    let first = &rows.sections[0];
    assert!(first.conditions.is_empty());
    for (n, key) in KEYS.iter().enumerate() {
        assert!(first.lines.iter().any(|(k, _)| *k == n), "{} has no value", key.name);
    }
}

#[test]
fn what_is_built_in_is_chosen_by_maker_members_and_crowds() {
    let rows = Rows::shipped();
    let (amd, intel) = (amd(25, 1), intel());
    assert!(rows.take_over(&amd) && !rows.take_over(&intel));
    let by_clock = |processor| rows.at(&case(processor)).look_by_clock != 0;
    let newer = self::amd(26, 2);
    assert!(by_clock(&newer) && !by_clock(&amd) && !by_clock(&intel));
    assert_eq!(rows.at(&case(&amd)).coop_min, (64 << 10) + 1);
    for processor in [&amd, &intel] {
        assert_eq!(rows.at(&Case { crowded: true, ..case(processor) }).coop_min, NEVER);
    }
    let copies = |processor| {
        let c = rows.at(&case(processor));
        (c.turn_max, c.coop_min, c.unawaited_exchange, c.ahead)
    };
    assert_eq!(copies(&amd), (9 << 20, (64 << 10) + 1, 2 << 20, 0));
    assert_eq!(copies(&intel), (16 << 10, (16 << 10) + 1, 0, 1 << 10));
    let pulls = |processor, members, crowded| {
        let c = rows.at(&Case { members, crowded, ..case(processor) });
        [c.coll_bcast_pull, c.coll_reduce_pull, c.coll_allreduce_pull, c.coll_allreduce_root, c.coll_allreduce_slices]
    };
    const K: usize = 1 << 10;
    for crowded in [false, true] {
        assert_eq!(pulls(&amd, 2, crowded), [NEVER, NEVER, NEVER, NEVER, 512 * K]);
        assert_eq!(pulls(&intel, 2, crowded), [512 * K, NEVER, 8 << 20, NEVER, NEVER]);
    }
    for processor in [&amd, &intel] {
        for members in [3, 4, 5, 100] {
            assert_eq!(pulls(processor, members, false), [512 * K, 512 * K, 128 * K, NEVER, 16 * K]);
        }
        assert_eq!(pulls(processor, 4, true), [512 * K, 512 * K, 512 * K, 8 * K, 32 * K]);
        assert_eq!(pulls(processor, 5, true), [NEVER, 512 * K, NEVER, 8 * K, 32 * K]);
    }
}

#[test]
fn later_lines_hold_where_their_conditions_do() {
    let text = "# of a test\nfmpl tuning 1\n[any]\nring_max = 1k\nunawaited = 2k # two\n\n[vendor AuthenticAMD, family 25]\n\
                ring_max = 3k\n[family 25, model 1, distance apart]\nring_max = never\n";
    let rows = Rows::shipped().with(Rows::read(text).unwrap());
    let ring_max = |p: &Processor, distance| rows.at(&Case { distance, ..case(p) }).ring_max;
    assert_eq!(ring_max(&intel(), Distance::Apart), 1 << 10);
    assert_eq!(ring_max(&amd(25, 2), Distance::Apart), 3 << 10);
    assert_eq!(ring_max(&amd(25, 1), Distance::Shared), 3 << 10);
    assert_eq!(ring_max(&amd(25, 1), Distance::Apart), NEVER);
    assert_eq!(rows.at(&case(&intel())).unawaited, 2 << 10);
}

/// What `fmpl info` prints is a file that says the same.
#[test]
fn what_is_explained_is_what_holds() {
    let rows = Rows::shipped().with(Rows::read("fmpl tuning 1\n[distance apart]\nring_max = 1k\n").unwrap());
    let p = amd(25, 1);
    for distance in Distance::ALL {
        let case = Case { distance, ..case(&p) };
        let all = rows.explain(&case, &Given::default());
        let lines: String = all.iter().map(|(name, value, _)| format!("{name} = {value}\n")).collect();
        let from = |name: &str| all.iter().find(|l| l.0 == name).unwrap().2.as_str();
        assert_eq!(from("ring_max"), if distance == Distance::Apart { "[distance apart]" } else { "[any]" });
        assert_eq!(from("take_over"), "[vendor AuthenticAMD]");
        assert_eq!(Rows::read(&format!("{FORMAT}\n[any]\n{lines}")).unwrap().at(&case), rows.at(&case));
    }
}

/// Each number has the setting of its name, which takes the values that a file may have, and says so where numbers are explained.
#[test]
fn every_number_has_a_setting() {
    for (key, setting) in KEYS.iter().zip(SETTINGS) {
        assert_eq!(setting.name, format!("FMPL_{}", key.name.to_uppercase()));
        let mut config = Config::default();
        let value = match key.kind {
            Kind::Switch => "on",
            Kind::Bytes => "never",
            Kind::Within(_, most) | Kind::Power(_, most) => &most.to_string(),
        };
        assert_eq!((setting.set)(&mut config, value), Some(()), "{}={value}", setting.name);
        assert_eq!((setting.set)(&mut config, "many"), None, "{}", setting.name);
        let mut row = Crossovers::default();
        config.numbers.over(&mut row);
        assert_eq!(Some(*(key.field)(&mut row)), key.kind.read(value));
        *(key.field)(&mut row) = 0;
        assert_eq!(row, Crossovers::default(), "{} gives another number", setting.name);
        let (intel, rows) = (intel(), Rows::shipped());
        let explained = rows.explain(&case(&intel), &config.numbers);
        let own = explained.iter().find(|l| l.0 == key.name).unwrap();
        assert_eq!((key.kind.read(&own.1), own.2.as_str()), (key.kind.read(value), setting.name));
    }
}

#[test]
fn a_file_is_for_the_processors_that_it_names() {
    let of = |heading: &str| Rows::read(&format!("{FORMAT}\n[{heading}]\nring_chunks = 4\n")).unwrap();
    assert!(of("any").knows(&intel()));
    assert!(of("vendor AuthenticAMD, family 25, model 1, distance apart").knows(&amd(25, 1)));
    assert!(!of("vendor AuthenticAMD, family 25, model 1, distance apart").knows(&amd(25, 17)));
    assert!(!of("vendor AuthenticAMD").knows(&intel()));
}

#[test]
fn what_cannot_be_read_names_its_line() {
    for (text, line, part) in [
        ("", 0, "no sections"),
        ("fmpl tuning 2\n[any]\n", 1, "fmpl tuning 1"),
        ("fmpl tuning 1\nring_max = 4k\n", 2, "no [section]"),
        ("fmpl tuning 1\n[any\n", 2, "no ]"),
        ("fmpl tuning 1\n[near]\n", 2, "no condition"),
        ("fmpl tuning 1\n[members 4-3]\n", 2, "no condition"),
        ("fmpl tuning 1\n[any]\nring_mix = 4k\n", 3, "ring_mix"),
        ("fmpl tuning 1\n[any]\nring_max 4k\n", 3, "NAME = VALUE"),
        ("fmpl tuning 1\n[any]\nring_max = often\n", 3, "possible values: bytes"),
        ("fmpl tuning 1\n[any]\nring_chunk = 3k\n", 3, "power of two"),
        ("fmpl tuning 1\n[any]\nring_chunks = 1\n", 3, "2 to 16"),
        ("fmpl tuning 1\n[any]\ntake_over = much\n", 3, "on | off"),
        ("fmpl tuning 1\n[distance apart]\neager = 1k\n", 3, "by the processor only"),
        ("fmpl tuning 1\n[distance apart]\ncoll_piece = 64k\n", 3, "the same for all"),
        ("fmpl tuning 1\n[members 2]\nring_max = 64k\n", 3, "no members"),
        ("fmpl tuning 1\n[any]\nring_max = 64", 3, "ends within a line"),
    ] {
        let damage = Rows::read(text).unwrap_err();
        assert_eq!(damage.line, line, "{text:?}: {damage}");
        assert!(damage.to_string().contains(part), "{text:?}: {damage}");
    }
}

proptest! {
    /// No text makes the reader panic, and no damage of a byte makes a number that is none.
    #[test]
    fn damaged_text_is_refused_or_means_numbers(at in 0..SHIPPED.len(), byte in 0u8..128) {
        let mut text = SHIPPED.as_bytes().to_vec();
        text[at] = byte;
        if let Ok(rows) = Rows::read(&String::from_utf8_lossy(&text)) {
            let p = amd(25, 1);
            for distance in Distance::ALL {
                let c = rows.at(&Case { distance, ..case(&p) });
                prop_assert!(c.ring_chunk == 0 || c.ring_chunk.is_power_of_two());
                prop_assert!(c.ring_chunks <= 16);
            }
        }
    }

    #[test]
    fn no_text_is_too_wild(text in "\\PC{0,200}") {
        let _ = Rows::read(&text);
        let _ = Rows::read(&format!("{FORMAT}\n{text}\n"));
    }
}

/// What both ends must have in common besides stands behind a network's name, and is no part of it.
#[test]
fn a_network_is_known_by_its_name() {
    let (rows, amd) = (Rows::shipped(), amd(25, 1));
    let halving = |network| rows.at(&Case { network, ..case(&amd) }).coll_far_allreduce_halving;
    assert_eq!(halving("tcp;ofi_rxm (protocol 7.1, addresses IPv4)"), 2 << 20);
    assert_eq!(halving("tcp"), 512 << 10);
    assert_eq!(halving("tcp (protocol 5.0, addresses IPv4)"), 512 << 10);
    assert_eq!(halving("another"), 16 << 10);
}
