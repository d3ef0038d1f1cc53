use super::*;

fn adopt(fd: BorrowedFd<'_>, rank: u32) -> Result<PeerRegion> {
    PeerRegion::adopt(fd.try_clone_to_owned().unwrap(), rank, 4, LAYOUT_VERSION)
}

#[test]
fn two_mappings_see_each_other_and_start_at_zero() {
    let region = Region::create(2, 4).unwrap();
    let peer = adopt(region.fd(), 2).unwrap();
    assert_eq!((peer.header().rank(), peer.header().size(), peer.header().pid()), (2, 4, std::process::id()));
    region.header().state.store(ALIVE, Ordering::Release);
    assert_eq!(peer.header().state.load(Ordering::Acquire), ALIVE);
    for offset in [SPOOL_AT, HEAP_AT + 64, LANES_AT + 12345, REGION_END - 8192] {
        let a = region.map(offset, 8192).unwrap();
        let b = peer.map(offset + 100, 4096).unwrap();
        // SAFETY: both windows are mapped, and this thread alone uses them.
        unsafe {
            assert_eq!(*b.as_ptr(), 0);
            *a.as_ptr().add(100) = 77;
            assert_eq!(*b.as_ptr(), 77);
        }
    }
    // SAFETY: the boards are mapped as long as the regions live.
    unsafe {
        *region.board().add(BOARD_LEN - 1) = 5;
        assert_eq!(*peer.board().add(BOARD_LEN - 1), 5);
    }
}

#[test]
fn punched_pages_are_gone_for_everybody() {
    let region = Region::create(0, 4).unwrap();
    let peer = adopt(region.fd(), 0).unwrap();
    let len = 64 * page_size();
    let (a, b) = (region.map(SPOOL_AT, len).unwrap(), peer.map(SPOOL_AT, len).unwrap());
    let blocks = || {
        // SAFETY: all-zero is a valid stat, and the descriptor is open.
        unsafe {
            let mut st: libc::stat = std::mem::zeroed();
            assert_eq!(libc::fstat(region.fd().as_raw_fd(), &mut st), 0);
            st.st_blocks
        }
    };
    let before = blocks();
    // SAFETY: the window has len bytes.
    unsafe { std::ptr::write_bytes(a.as_ptr(), 1, len) };
    assert_eq!(blocks() - before, (len / 512) as i64);
    region.punch(SPOOL_AT, len as u64).unwrap();
    assert_eq!(blocks(), before);
    // SAFETY: as above.
    assert_eq!(unsafe { *b.as_ptr().add(len - 1) }, 0);
    region.commit(SPOOL_AT, len as u64).unwrap();
    assert_eq!(blocks() - before, (len / 512) as i64);
}

#[test]
fn windows_beyond_the_region_are_refused() {
    let region = Region::create(0, 1).unwrap();
    for (offset, len) in [(REGION_END, 1), (REGION_END - 1, 2), (u64::MAX, 1), (0, 0), (1, usize::MAX)] {
        assert_eq!(region.map(offset, len).unwrap_err().code(), Code::Argument, "{offset:#x} {len}");
    }
    assert_eq!(region.punch(REGION_END - 1, 2).unwrap_err().code(), Code::Argument);
}

#[test]
fn foreign_descriptors_are_refused() {
    let region = Region::create(1, 4).unwrap();
    let e = adopt(region.fd(), 2).unwrap_err();
    assert_eq!(e.code(), Code::Peer);
    assert!(e.detail().contains("rank 1 of 4"), "{e}");

    let old = Region::create_with_version(1, 4, LAYOUT_VERSION + 7).unwrap();
    let e = adopt(old.fd(), 1).unwrap_err();
    assert_eq!(e.code(), Code::Version);
    assert!(e.detail().contains(&format!("version {},", LAYOUT_VERSION + 7)), "{e}");
    assert!(e.detail().contains(&format!("this process has {LAYOUT_VERSION};")), "{e}");

    let (pipe, _end) = io::pipe().unwrap();
    assert_eq!(adopt(pipe.as_fd(), 1).unwrap_err().code(), Code::Peer);
    let unsealed = memfd(1).unwrap();
    // SAFETY: an open memfd of ours.
    assert_eq!(unsafe { libc::ftruncate(unsealed.as_raw_fd(), REGION_END as i64) }, 0);
    assert!(adopt(unsealed.as_fd(), 1).unwrap_err().detail().contains("sealed"));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::fcntl(unsealed.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) }, 0);
    assert!(adopt(unsealed.as_fd(), 1).unwrap_err().detail().contains("magic"));
}

#[test]
fn the_file_cannot_be_cut_short() {
    let region = Region::create(0, 1).unwrap();
    // SAFETY: an open descriptor; the call must fail and changes nothing then.
    assert_eq!(unsafe { libc::ftruncate(region.fd().as_raw_fd(), 4096) }, -1);
    assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EPERM));
}
