use super::*;
use proptest::prelude::*;

fn slot(kind: u8, len: u32, words: &[u64]) -> Vec<u64> {
    let mark = 9 | (kind as u64) << 32;
    let mut slot = vec![mark, 3 | (len as u64) << 32, 0];
    slot.extend(words);
    let covered: Vec<u64> = std::iter::once(slot[1]).chain(words.iter().copied()).collect();
    slot[2] = sum(mark, &covered);
    slot.resize(SLOT / 8, 0);
    slot
}

fn taken(slot: &[u64]) -> Option<(Kind, u32, Option<Away>)> {
    record(slot[0], |n| slot[n]).map(|(arrival, away)| (arrival.kind, arrival.len, away))
}

#[test]
fn slots_are_what_they_say() {
    assert_eq!(taken(&slot(2, 16, &[5, 6])), Some((Kind::Area, 16, None)));
    assert_eq!(taken(&slot(2, 40, &[1, 2, 3, 4, 5])), Some((Kind::Area, 40, None)));
    assert_eq!(taken(&slot(5, 0, &[])), Some((Kind::Nothing, 0, None)));
    let place = |addr| Place { addr, rkey: 8 };
    let away = Away { len: 5000, data: place(1 << 40), block: place(1 << 41), generation: 3 };
    for kind in [3, 4] {
        let kind_of = Kind::from_number(kind).unwrap();
        assert_eq!(taken(&slot(kind, 0, &away.encode())), Some((kind_of, 0, Some(away))));
        let wild = Away { len: u64::MAX, ..away };
        assert_eq!(taken(&slot(kind, 0, &wild.encode())), Some((Kind::Damaged, 0, None)));
    }
    // A line's own bytes are for senders of the receiver's node.
    for kind in [0, 1, 6, 7, 255] {
        assert_eq!(taken(&slot(kind, 16, &[5, 6])).map(|t| t.0), Some(Kind::Damaged), "kind {kind}");
    }
    let mut torn = slot(2, 16, &[5, 6]);
    torn[4] = 7;
    assert_eq!(taken(&torn), None);
}

proptest! {
    /// Whatever is written into a slot, its message is no longer than a slot, or lies where an address can be.
    #[test]
    fn a_slot_names_what_can_be(kind in 0u8..8, len in prop_oneof![any::<u32>(), 0u32..2000], words: [u64; 5], small in 0u64..9000) {
        for words in [words, [small, words[1], words[2], words[3], 1], [small, 1 << 40, 7, small, 1]] {
            let mut slot = slot(kind, len, &words);
            if kind == 2 && len as usize <= AREA_BYTES {
                let n = (len as usize).div_ceil(8);
                let covered: Vec<u64> = std::iter::once(slot[1]).chain(slot[3..3 + n].iter().copied()).collect();
                slot[2] = sum(slot[0], &covered);
            }
            match taken(&slot) {
                Some((Kind::Area, len, None)) => prop_assert!(len as usize <= AREA_BYTES),
                Some((Kind::Spooled | Kind::Offered, _, Some(away))) => {
                    prop_assert!(away.data.addr.checked_add(away.len).is_some() && away.block.addr != 0);
                }
                Some((Kind::Nothing | Kind::Damaged, _, None)) | None => {}
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn tickets_beyond_all_senders(sent: u64, taken: u64, most in 0u64..1 << 20) {
        let beyond = sent as i128 - taken as i128;
        prop_assert_eq!(is_too_many(sent, taken, most), beyond > (most + BETWEEN) as i128);
    }
}
