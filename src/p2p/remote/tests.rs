use super::*;
use proptest::prelude::*;

#[test]
fn landings_are_what_they_say() {
    let land = |kind, len| Land::new(9, 0, kind, len, 7);
    assert_eq!(arrived(land(Kind::RemoteInline, 104), [0; 3]), Some(Arrived::Inline(104)));
    assert_eq!(arrived(land(Kind::RemoteInline, 105), [0; 3]), None);
    assert_eq!(arrived(land(Kind::Direct, 8), [5, 3, 0]), Some(Arrived::Put { len: 5, counted: None }));
    assert_eq!(arrived(land(Kind::Direct, 16), [5, 3, 0]), Some(Arrived::Put { len: 5, counted: Some(3) }));
    assert_eq!(arrived(land(Kind::Direct, 8), [1 << 63, 3, 0]), None);
    let there = Arrived::Spooled { len: 5, header: 136, addr: 1 << 40, keys: 77 };
    assert_eq!(arrived(land(Kind::Spooled, 24), [5, 1 << 40, 77]), Some(there));
    for (len, addr) in [(5, 136), (5, 0), (5, u64::MAX), (SPOOL_WINDOW as u64 + 1, 1 << 40)] {
        assert_eq!(arrived(land(Kind::Spooled, 24), [len, addr, 77]), None, "{len} at {addr:#x}");
    }
    for kind in [Kind::Inline, Kind::Ring, Kind::Coop, Kind::Pull, Kind::Link, Kind::Turn] {
        assert_eq!(arrived(land(kind, 8), [5, 1 << 40, 77]), None);
    }
}

proptest! {
    /// Whatever comes in a landing, no more is taken out of it than it has, and no address wraps.
    #[test]
    fn a_landing_names_what_can_be(land in any::<u64>(), words in any::<[u64; 3]>(), by in 0u64..512) {
        for words in [words, [by, words[1], words[2]], [words[0], by, words[2]], [by, by.wrapping_sub(256), 0]] {
            match arrived(Land(land), words) {
                Some(Arrived::Inline(len)) => prop_assert!(len <= REMOTE_INLINE),
                Some(Arrived::Put { len, .. }) => prop_assert!(len <= isize::MAX as usize),
                Some(Arrived::Spooled { len, header, addr, .. }) => {
                    prop_assert!(addr > header && addr.checked_add(len as u64).is_some() && len <= SPOOL_WINDOW);
                }
                None => {}
            }
        }
    }
}
