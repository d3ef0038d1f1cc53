use super::*;
use crate::fabric::shm::region::Region;

/// Another rank of the node can write into the words; whatever it has written, nobody waits for them without end.
#[test]
fn damaged_uses_are_no_uses() {
    let region = Region::create(0, 1).unwrap();
    let own = Window::new(region.map(RMA_AT, WINDOW_BYTES).unwrap());
    let fill = |word: u64| (0..USES).for_each(|n| own.usage(n).word.store(word, Ordering::Relaxed));
    let wild = [u64::MAX, 1, 0xdead_beef_dead_beef, word_of(3, ENTRIES_MOST as u32), 1 << 57, RECORDS as u64];
    for word in wild {
        fill(word);
        let using = using(&own, 2, 7).unwrap();
        assert!(is_used(&own, |rank, entry| (rank, entry) == (2, 7)), "{word:#x}");
        drop(using);
        assert!(!is_used(&own, |rank, entry| (rank, entry) == (2, 7)));
    }
    // What threads of this process could have written is believed, for some time.
    for word in [word_of(0, 0), word_of(3, ENTRIES_MOST as u32 - 1), word_of(9, RECORDS)] {
        fill(word);
        let error = using(&own, 2, 7).err().expect("no word is free");
        assert!(error.code() == Code::Peer && error.detail().contains("all 64 words"), "{error}");
        own.usage(40).word.store(0, Ordering::Relaxed);
        assert!(using(&own, 2, 7).is_ok());
    }
}
