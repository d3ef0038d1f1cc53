//! Where the records of other ranks lie in this process, for scenes in which a rank damages them.

/// Where regions are mapped: first byte, end, offset, rank.
pub fn mappings() -> Vec<(u64, u64, u64, u32)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let one = |line: &str| {
        let mut fields = line.split_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let offset = fields.nth(1)?;
        let rank = line.split("/memfd:fmpl-").nth(1)?.split(' ').next()?.parse().ok()?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some((hex(begin)?, hex(end)?, hex(offset)?, rank))
    };
    maps.lines().filter_map(one).collect()
}

/// Where a place of a rank's region is mapped here, if it is.
pub fn mapped(rank: u32, at: u64) -> Option<*mut u64> {
    let within = |(begin, end, offset, of): (u64, u64, u64, u32)| {
        (of == rank && (offset..offset + (end - begin)).contains(&at)).then(|| (begin + (at - offset)) as *mut u64)
    };
    mappings().into_iter().find_map(within)
}
