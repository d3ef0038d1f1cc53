use super::*;

fn heap() -> Heap {
    Heap::new(Arc::new(Region::create(0, 1).unwrap()))
}

/// Bytes of memory that the region's file occupies.
fn occupied(h: &Heap) -> usize {
    let file = std::fs::File::from(h.region.fd().try_clone_to_owned().unwrap());
    std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap()) as usize * 512
}

fn all_free(h: &Heap) -> bool {
    let a = h.accounts.lock().unwrap();
    let window = h.window.get().unwrap().len();
    a.used.is_empty() && a.in_use == 0 && a.free.len() == 1 && a.by_len.len() == 1 && a.free[&0].0 == window
}

#[test]
fn heaps_lie_apart() {
    let heaps: Vec<Heap> = (0..6).map(|r| Heap::new(Arc::new(Region::create(r, 6).unwrap()))).collect();
    let places: BTreeSet<usize> = heaps.iter().map(|h| h.alloc(8192).unwrap() as usize % (1 << 28)).collect();
    assert!(places.len() == heaps.len() && places.iter().all(|at| *at < 1 << 20), "{places:x?}");
}

#[test]
fn alignment_and_blocks_of_nothing() {
    let h = heap();
    let mut seen = BTreeSet::new();
    for size in [0, 0, 1, 63, 64, 65, 4095, 4096, 4097, 100_000, 0, 1 << 20] {
        let p = h.alloc(size).unwrap();
        assert_eq!(p as usize % if size >= PAGED { page_size() } else { GRAIN }, 0, "{size}");
        assert!(seen.insert(p as usize), "{size}: the same address twice");
        assert!(h.contains(p, size) && !h.contains(p, usize::MAX));
    }
    seen.into_iter().for_each(|p| h.free(p as *mut u8).unwrap());
    assert!(all_free(&h));
    h.free(std::ptr::null_mut()).unwrap();
    let elsewhere = 0u8;
    assert!(!h.contains(&raw const elsewhere, 1));
}

#[test]
fn a_wrong_free_says_what_is_wrong() {
    let h = heap();
    let mut local = 0u8;
    let text = |p: *mut u8| {
        let e = h.free(p).unwrap_err();
        assert_eq!(e.code(), Code::Argument);
        e.detail().to_string()
    };
    assert!(text(&mut local).contains("not from fmpl_alloc"), "before there is a window");
    let (a, b) = (h.alloc(1000).unwrap(), h.alloc(1000).unwrap());
    assert!(text(&mut local).contains("not from fmpl_alloc"));
    assert!(text(a.wrapping_add(8)).contains("8 bytes within a block"));
    h.free(a).unwrap();
    assert!(text(a).contains("freed before"));
    h.free(b).unwrap();
    assert!(text(b).contains("freed before"));
    assert!(all_free(&h));
}

#[test]
fn too_much_is_an_error_and_leaves_the_rest_alone() {
    let h = heap();
    for size in [usize::MAX, usize::MAX - 63, 1 << 60] {
        assert_eq!(h.alloc(size).unwrap_err().code(), Code::Memory);
    }
    // Fill the window; nothing is touched, so it costs nothing.
    let step = Machine::get().memory.min(16 << 30) as usize / 2;
    let mut blocks = Vec::new();
    let e = loop {
        match h.alloc(step) {
            Ok(p) => blocks.push(p),
            Err(e) => break e,
        }
    };
    assert!(e.code() == Code::Memory && e.detail().contains("the largest free block"), "{e}");
    assert!(blocks.len() * step <= h.window.get().unwrap().len() && blocks.len() > 1);
    blocks.into_iter().for_each(|p| h.free(p).unwrap());
    assert!(all_free(&h));
}

#[test]
fn freed_pages_go_back_to_the_system() {
    let h = heap();
    let empty = {
        h.free(h.alloc(1).unwrap()).unwrap();
        occupied(&h)
    };
    let big = h.alloc(8 << 20).unwrap();
    // SAFETY: a block of that length.
    unsafe { std::ptr::write_bytes(big, 1, 8 << 20) };
    assert!(occupied(&h) >= empty + (8 << 20));
    h.free(big).unwrap();
    assert!(occupied(&h) <= empty);
    // Many small ones, freed in an order that joins none until late.
    let small: Vec<_> = (0..20_000)
        .map(|_| {
            let p = h.alloc(200).unwrap();
            // SAFETY: a block of that length.
            unsafe { std::ptr::write_bytes(p, 1, 200) };
            p
        })
        .collect();
    assert!(occupied(&h) > 4 << 20);
    for p in small.iter().step_by(2).chain(small.iter().skip(1).step_by(2)) {
        h.free(*p).unwrap();
    }
    assert!(all_free(&h));
    assert!(occupied(&h) <= empty + DIRTY_MOST + page_size(), "{}", occupied(&h));
}

#[test]
fn random_blocks_never_overlap_and_keep_their_contents() {
    let h = heap();
    let mut live: Vec<(*mut u8, usize, u8)> = Vec::new();
    let mut seed = 42u64;
    let mut random = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for round in 0..3000 {
        if live.len() < 100 && random(5) > 1 {
            let size = match random(3) {
                0 => random(200),
                1 => random(10_000),
                _ => random(200_000),
            };
            let p = h.alloc(size).unwrap();
            // SAFETY: a block of that length.
            unsafe { std::ptr::write_bytes(p, round as u8, size) };
            live.push((p, size, round as u8));
        } else if !live.is_empty() {
            let (p, size, byte) = live.swap_remove(random(live.len()));
            // SAFETY: a block of that length, written by nobody else.
            assert!(unsafe { std::slice::from_raw_parts(p, size) }.iter().all(|b| *b == byte), "round {round}");
            h.free(p).unwrap();
        }
    }
    live.into_iter().for_each(|(p, ..)| h.free(p).unwrap());
    assert!(all_free(&h));
}

#[test]
fn threads_share_it() {
    let h = heap();
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let h = &h;
            s.spawn(move || {
                for size in 1..300usize {
                    let p = h.alloc(size * 50).unwrap();
                    // SAFETY: a block of that length, this thread's own.
                    unsafe {
                        std::ptr::write_bytes(p, t, size * 50);
                        assert!(std::slice::from_raw_parts(p, size * 50).iter().all(|b| *b == t));
                    }
                    h.free(p).unwrap();
                }
            });
        }
    });
    assert!(all_free(&h));
}
