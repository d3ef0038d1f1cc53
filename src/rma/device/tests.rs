use super::*;

#[test]
fn cards_come_back_as_they_went() {
    let place = |addr, rkey| Place { addr, rkey };
    let (block, table) = (place(1 << 50, 7), place(3, u32::MAX));
    let card = Card { block, table, slots: 4096, shares: 8, changes: 1, digest: 77 };
    assert_eq!(Card::decode(&card.encode()), Some(card));
    assert_eq!(Card::decode(&[]), None);
    assert_eq!(Card::decode(&Card { shares: 3, ..card }.encode()), None);
}

/// Nothing in a block lies on something else.
#[test]
fn a_block_has_room_for_all() {
    for (slots, shares, size) in [(2, 1, 1), (4096, 1, 2), (4096, 64, 1 << 20), (16, 8, 65)] {
        let plan = Plan { slots, shares, size };
        let mut at: Vec<(usize, usize)> = (0..shares).flat_map(|k| [(plan.sent(k), 8), (plan.freed(k), 8)]).collect();
        at.extend([(plan.claim(), 8), (plan.told(), 16), (plan.holders(), size.div_ceil(64) * 8)]);
        at.extend((0..REMOTE_REPLIES).map(|n| (plan.reply(n), REPLY)));
        at.extend((0..shares).flat_map(|k| (0..plan.each()).map(move |t| (plan.slot(k, t), SLOT))));
        at.sort_unstable();
        assert!(at.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "{plan:?}");
        assert_eq!(at.last().map(|(at, len)| at + len), Some(plan.bytes()));
    }
}
