//! The machines of a job: as people list them, as batch systems do, and which ranks each gets.
//!
//! | where from | form |
//! |---|---|
//! | `-H`, `-host` | `a:4,b` |
//! | `--hostfile` | a line for each, MPICH's `a:4` or Open MPI's `a slots=4 max_slots=8`; `#` begins a comment |
//! | Slurm | `SLURM_JOB_NODELIST` (`n[01-03,7],m`) with `SLURM_TASKS_PER_NODE` (`2(x3),1`) |
//! | PBS | the file `PBS_NODEFILE`, a line for each slot |
//! | LSF | the file `LSB_DJOB_HOSTFILE`, likewise; or `LSB_MCPU_HOSTS` (`a 4 b 2`) |
//! | Grid Engine | the file `PE_HOSTFILE`: host, slots, and more |
//!
//! Nothing here looks at the system but what the caller hands in.

use std::ffi::{OsStr, OsString};

/// A machine of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// As it is given to the launch agent: a name or address, with a user in front (`me@a`) or not.
    pub name: String,
    /// How many ranks it is for, where that was said.
    pub slots: Option<u32>,
    /// How many it may have at most.
    pub most: Option<u32>,
}

/// More hosts, or slots, than any job has.
const MOST: u64 = 1 << 16;

impl Host {
    fn new(name: &str, slots: Option<u32>) -> Result<Host, String> {
        let fits = !name.is_empty()
            && !name.starts_with('-')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@:%".contains(&b));
        match fits {
            // It becomes a word of a command line, which a shell may read.
            false => Err(format!("{name:?} cannot be the name of a host")),
            true => Ok(Host { name: name.to_owned(), slots, most: None }),
        }
    }
}

fn number(text: &str, of: &str) -> Result<u32, String> {
    let fits = |n: &u32| (1..=MOST as u32).contains(n);
    text.parse().ok().filter(fits).ok_or_else(|| format!("{of}: {text:?} is no number of slots (1 to {MOST})"))
}

/// `a`, `a:4`, `[fe80::1]:4`.
fn host_and_slots(text: &str) -> Result<Host, String> {
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        let slots = rest.strip_prefix(':').map(|n| number(n, text)).transpose()?;
        return if slots.is_none() && !rest.is_empty() {
            Err(format!("{text:?} is no host"))
        } else {
            Host::new(address, slots)
        };
    }
    match text.split_once(':') {
        Some((_, more)) if more.contains(':') => Host::new(text, None),
        Some((name, slots)) => Host::new(name, Some(number(slots, text)?)),
        None => Host::new(text, None),
    }
}

/// One that is named again has more slots.
fn add(all: &mut Vec<Host>, new: Host) {
    match all.iter_mut().find(|h| h.name == new.name) {
        Some(host) => {
            host.slots = Some(host.slots.unwrap_or(1).saturating_add(new.slots.unwrap_or(1)));
            host.most = host.most.or(new.most);
        }
        None => all.push(new),
    }
}

fn some(all: Vec<Host>, of: &str) -> Result<Vec<Host>, String> {
    match all.len() as u64 {
        0 => Err(format!("{of} names no host")),
        1..=MOST => Ok(all),
        _ => Err(format!("{of} names more than {MOST} hosts")),
    }
}

/// What follows `-H`.
pub fn of_list(text: &str) -> Result<Vec<Host>, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        add(&mut all, host_and_slots(part)?);
    }
    some(all, "the list of hosts (-H)")
}

/// The text of a hostfile.
pub fn of_file(text: &str) -> Result<Vec<Host>, String> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let at = |e: String| format!("line {}: {e}", i + 1);
        let mut line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
        line = line.replace(" =", "=").replace("= ", "=");
        let mut words = line.split(' ').filter(|w| !w.is_empty());
        let Some(first) = words.next() else { continue };
        let mut host = host_and_slots(first).map_err(at)?;
        for word in words {
            match word.split_once('=') {
                Some(("slots" | "cpu" | "cpus", n)) => host.slots = Some(number(n, word).map_err(at)?),
                Some(("max_slots" | "max-slots", n)) => host.most = Some(number(n, word).map_err(at)?),
                Some(("user", user)) => {
                    host = Host { slots: host.slots, most: host.most, ..named(user, &host).map_err(at)? }
                }
                _ => return Err(at(format!("{word:?}: a host has slots=, max_slots= and user= behind it"))),
            }
        }
        if host.most.is_some_and(|most| host.slots.is_some_and(|slots| slots > most)) {
            return Err(at("slots= is more than max_slots=".into()));
        }
        add(&mut all, host);
    }
    some(all, "the hostfile")
}

fn named(user: &str, host: &Host) -> Result<Host, String> {
    Host::new(&format!("{user}@{}", host.name), None)
}

/// What a batch system has given this job, with the name of where it says so. `var` and `read` are the environment and the files.
pub fn of_batch_system(
    var: impl Fn(&str) -> Option<String>,
    read: impl Fn(&OsStr) -> std::io::Result<String>,
) -> Result<Option<(&'static str, Vec<Host>)>, String> {
    let file = |name: &'static str, each: fn(&str) -> Result<Vec<Host>, String>| -> Result<Option<_>, String> {
        let Some(path) = var(name) else { return Ok(None) };
        let at = |e: String| format!("{name}={path}: {e}");
        let text = read(&OsString::from(&path)).map_err(|e| at(e.to_string()))?;
        Ok(Some((name, each(&text).map_err(at)?)))
    };
    if let Some(list) = var("SLURM_JOB_NODELIST") {
        let counts = var("SLURM_TASKS_PER_NODE").or_else(|| var("SLURM_JOB_CPUS_PER_NODE"));
        return Ok(Some(("SLURM_JOB_NODELIST", of_slurm(&list, counts.as_deref())?)));
    }
    if let Some(found) = file("PBS_NODEFILE", |text| of_slots(text.lines()))? {
        return Ok(Some(found));
    }
    if let Some(found) = file("LSB_DJOB_HOSTFILE", |text| of_slots(text.lines()))? {
        return Ok(Some(found));
    }
    if let Some(list) = var("LSB_MCPU_HOSTS") {
        return Ok(Some(("LSB_MCPU_HOSTS", of_pairs(&list)?)));
    }
    file("PE_HOSTFILE", |text| {
        let first_two = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        of_pairs(&text.lines().map(first_two).collect::<Vec<_>>().join("\n"))
    })
}

/// A word for each slot.
fn of_slots<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Host>, String> {
    let mut all = Vec::new();
    for line in lines.map(str::trim).filter(|l| !l.is_empty()) {
        add(&mut all, Host::new(line, Some(1))?);
    }
    some(all, "the list")
}

/// Hosts with a number behind each.
fn of_pairs(text: &str) -> Result<Vec<Host>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut all = Vec::new();
    for pair in words.chunks(2) {
        let &[name, slots] = pair else { return Err(format!("{:?} has no number of slots behind it", pair[0])) };
        add(&mut all, Host::new(name, Some(number(slots, name)?))?);
    }
    some(all, "the list")
}

/// Slurm's lists of nodes and of tasks on each.
fn of_slurm(list: &str, counts: Option<&str>) -> Result<Vec<Host>, String> {
    let names = slurm_names(list)?;
    let counts = counts.map(|c| slurm_counts(c, names.len())).transpose()?;
    let mut all = Vec::new();
    for (i, name) in names.iter().enumerate() {
        add(&mut all, Host::new(name, counts.as_ref().map(|c| c[i]))?);
    }
    some(all, "SLURM_JOB_NODELIST")
}

/// `n[01-03,7]-ib,m` in full.
pub(super) fn slurm_names(list: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("the list of nodes {list:?} is not understood");
    let (mut all, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in list.chars().chain([',']) {
        match c {
            ',' if depth == 0 => {
                all.append(&mut slurm_part(&part, MOST as usize - all.len().min(MOST as usize)).ok_or_else(wrong)?);
                part.clear();
                continue;
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(wrong());
        }
        part.push(c);
    }
    if depth == 0 { Ok(all) } else { Err(wrong()) }
}

/// One name with any number of brackets; at most so many.
fn slurm_part(part: &str, most: usize) -> Option<Vec<String>> {
    let Some((head, rest)) = part.split_once('[') else { return Some(vec![part.to_owned()]) };
    let (inside, tail) = rest.split_once(']')?;
    let tails = slurm_part(tail, most)?;
    let mut all = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u64>().ok()).flatten();
        let (from, to) = (digits(first)?, digits(last)?);
        if from > to || (to - from + 1).checked_mul(tails.len() as u64)? > (most - all.len()) as u64 {
            return None;
        }
        let width = first.len();
        all.extend((from..=to).flat_map(|n| tails.iter().map(move |tail| format!("{head}{n:0width$}{tail}"))));
    }
    Some(all)
}

/// `2(x3),1` in full, for so many nodes.
fn slurm_counts(text: &str, nodes: usize) -> Result<Vec<u32>, String> {
    let wrong = || format!("{text:?} does not say how many tasks each of {nodes} nodes has");
    let mut all = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')').and_then(|t| t.parse().ok()).ok_or_else(wrong)?),
            None => (part, 1usize),
        };
        if times > nodes - all.len().min(nodes) {
            return Err(wrong());
        }
        all.extend(std::iter::repeat_n(number(count, text)?, times));
    }
    if all.len() == nodes { Ok(all) } else { Err(wrong()) }
}

/// How many ranks are wanted, and how they are dealt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// How many; `None`: as many as there are slots.
    pub n: Option<u32>,
    /// So many on each host.
    pub each: Option<u32>,
    /// One to each host in turn, instead of filling one after the other.
    pub in_turn: bool,
    /// More than there are slots.
    pub oversubscribe: bool,
}

/// The ranks of each host, in the order of the hosts.
///
/// Where nobody said how many slots a host has, all get equal shares of what is wanted, or one rank each.
pub fn ranks_of(hosts: &[Host], wanted: Wanted) -> Result<Vec<Vec<u32>>, String> {
    let untold = wanted.each.is_none() && hosts.iter().all(|h| h.slots.is_none());
    let room = |h: &Host| u64::from(h.most.unwrap_or(u32::MAX));
    let slots = |h: &Host| u64::from(wanted.each.or(h.slots).unwrap_or(1)).min(room(h));
    let have: u64 = hosts.iter().map(slots).sum();
    let n = wanted.n.map_or(have, u64::from);
    if let Some((each, h)) =
        wanted.each.and_then(|e| hosts.iter().find(|h| h.slots.is_some_and(|s| s < e)).map(|h| (e, h)))
        && !wanted.oversubscribe
    {
        let slots = h.slots.unwrap_or(1);
        return Err(format!("{each} ranks on each host, and {} has {slots} slots: --oversubscribe allows it", h.name));
    }
    if n > have && !untold && !wanted.oversubscribe {
        return Err(format!("{n} ranks on {have} slots: --oversubscribe allows it"));
    }
    let most: u64 = hosts.iter().map(room).sum();
    if n > most {
        return Err(format!("{n} ranks on hosts that may have {most} at most (max_slots)"));
    }
    if n > MOST {
        return Err(format!("more than {MOST} ranks"));
    }
    let mut counts = vec![0u64; hosts.len()];
    let mut left = n;
    if untold && !wanted.in_turn {
        let by = hosts.len() as u64;
        let share = |i: u64| n / by + u64::from(i < n % by);
        if hosts.iter().zip(0..).all(|(h, i)| share(i) <= room(h)) {
            counts = (0..by).map(share).collect();
            left = 0;
        }
    }
    let mut turns = Vec::new();
    while left > 0 {
        // A pass: as many as there are slots, or one each.
        for (i, h) in hosts.iter().enumerate() {
            let step = if wanted.in_turn { 1 } else { slots(h) };
            let limit = if n > have || untold { room(h) } else { slots(h) };
            let more = step.min(left).min(limit - counts[i]);
            (counts[i], left) = (counts[i] + more, left - more);
            turns.extend((0..more).map(|_| i));
        }
    }
    let mut ranks: Vec<Vec<u32>> = vec![Vec::new(); hosts.len()];
    if wanted.in_turn {
        (0..).zip(turns).for_each(|(rank, host)| ranks[host].push(rank));
    } else {
        let mut next = 0..n as u32;
        ranks.iter_mut().zip(counts).for_each(|(of, count)| of.extend(next.by_ref().take(count as usize)));
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests;
