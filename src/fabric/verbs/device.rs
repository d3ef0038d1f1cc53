//! Devices, their ports and addresses, and which of them a process uses.
//!
//! A port is chosen once: of those that are active the ones on this process's NUMA node, if there are any; among these in turn, so
//! that the ranks of a node spread over them. Of a port's addresses (gids) RoCE version 2 with IPv4 comes first, then version 2 with a
//! global IPv6 address, then link-local ones, then version 1; on Infiniband the first. Settings override each of these; a wrong
//! name or number is answered with the list of what there is.

mod address;

use std::ffi::{CStr, c_int};
use std::fmt;
use std::sync::Arc;

use super::ffi::{self, Gid};
use super::load::{Library, library, query_gid_table};
use crate::base::config::Config;
use crate::base::error::{Code, Error, Result, error};
pub use address::{Address, GidKind};

/// An open device.
pub struct Device {
    pub(super) lib: &'static Library,
    pub(super) context: *mut ffi::Context,
    name: String,
    attr: ffi::DeviceAttr,
}

// SAFETY: the functions of libibverbs may be called from any thread, with one context from several at a time.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// The list that `ibv_get_device_list` gives, freed when dropped.
struct List {
    lib: &'static Library,
    at: *mut *mut ffi::Device,
    len: usize,
}

impl List {
    fn get() -> Result<List> {
        let lib = library().map_err(|why| error!(Code::Unsupported, "there are no RDMA devices here ({why})"))?;
        let mut len: c_int = 0;
        // SAFETY: a valid place for the number.
        let at = unsafe { (lib.get_device_list)(&mut len) };
        if at.is_null() {
            let why = std::io::Error::last_os_error();
            return Err(error!(Code::Unsupported, "there are no RDMA devices here (ibv_get_device_list: {why})"));
        }
        Ok(List { lib, at, len: len.max(0) as usize })
    }
    fn devices(&self) -> impl Iterator<Item = (*mut ffi::Device, String)> {
        (0..self.len).map(|i| {
            // SAFETY: the list has `len` entries, whose names end with NUL.
            unsafe {
                let device = *self.at.add(i);
                (device, CStr::from_ptr((self.lib.get_device_name)(device)).to_string_lossy().into_owned())
            }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: from `ibv_get_device_list`, freed once; open devices do not need it.
        unsafe { (self.lib.free_device_list)(self.at) };
    }
}

/// What a device tells by itself, ibv_get_async_event(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The completion queue at this address was overrun: completions are lost.
    Overrun(usize),
    /// The queue pair of this number has refused a request of the other end.
    Refused(u32),
    /// It cannot go on.
    Pair(u32),
    /// Nothing of the device can.
    All,
}

/// The names of the devices of this machine. `Unsupported`: the library is not there, and the text says why.
pub fn names() -> Result<Vec<String>> {
    Ok(List::get()?.devices().map(|(_, name)| name).collect())
}

impl Device {
    /// Opens the device of this name.
    pub fn open(name: &str) -> Result<Arc<Device>> {
        let list = List::get()?;
        if !list.devices().any(|(_, n)| n == name) {
            let all: Vec<String> = list.devices().map(|(_, n)| n).collect();
            return Err(error!(Code::Setting, "no RDMA device {name}; there are: {}", listed(&all)));
        }
        Device::of(&list, name)
    }

    /// Opens a device of the list.
    fn of(list: &List, name: &str) -> Result<Arc<Device>> {
        let Some((device, _)) = list.devices().find(|(_, n)| n == name) else {
            return Err(error!(Code::Unsupported, "there is no RDMA device {name} any more"));
        };
        // SAFETY: the device is in the list, which lives.
        let context = unsafe { (list.lib.open_device)(device) };
        if context.is_null() {
            return Err(Error::system(format!(
                "opening the RDMA device {name} (ibv_open_device; /dev/infiniband/uverbs* must be there and writable)"
            )));
        }
        // SAFETY: all zero is a valid DeviceAttr.
        let mut attr: ffi::DeviceAttr = unsafe { std::mem::zeroed() };
        let lib = list.lib;
        // SAFETY: the context is open; the structure has the size that the library writes.
        let failed = unsafe { (lib.query_device)(context, &mut attr) };
        let device = Arc::new(Device { lib, context, name: name.to_owned(), attr });
        if failed != 0 {
            return Err(error!(Code::System, "asking the RDMA device {name} what it can (ibv_query_device)"));
        }
        Ok(device)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// What it can.
    pub fn attr(&self) -> &ffi::DeviceAttr {
        &self.attr
    }
    pub(super) fn ops(&self) -> &ffi::ContextOps {
        // SAFETY: the context is open as long as the device lives.
        unsafe { &(*self.context).ops }
    }
    /// The descriptor on which errors of the device are told, for `poll`; from now on nobody is held up who asks for the
    /// [next](Device::next_error).
    pub fn watch_errors(&self) -> c_int {
        // SAFETY: as above; a descriptor of the context's.
        unsafe {
            let fd = (*self.context).async_fd;
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
            fd
        }
    }
    /// The next of what the device has told, if it is an error; `None`: there is nothing more. For who [watches](Device::watch_errors).
    pub fn next_error(&self) -> Option<DeviceError> {
        loop {
            let mut told = ffi::AsyncEvent { element: std::ptr::null_mut(), event_type: 0 };
            // SAFETY: the context is open, the place writable.
            if unsafe { (self.lib.get_async_event)(self.context, &mut told) } != 0 {
                return None;
            }
            // SAFETY: a queue pair, if the event is about one; it is there until the event is acknowledged, for which its destruction waits.
            let number = || unsafe { (*told.element.cast::<ffi::Qp>()).qp_num };
            let error = match told.event_type {
                ffi::event::CQ_ERR => Some(DeviceError::Overrun(told.element as usize)),
                ffi::event::QP_REQ_ERR | ffi::event::QP_ACCESS_ERR => Some(DeviceError::Refused(number())),
                ffi::event::QP_FATAL => Some(DeviceError::Pair(number())),
                ffi::event::DEVICE_FATAL | ffi::event::SRQ_ERR => Some(DeviceError::All),
                _ => None,
            };
            // SAFETY: the event that was just got, once.
            unsafe { (self.lib.ack_async_event)(&mut told) };
            if error.is_some() {
                return error;
            }
        }
    }

    /// Its port of this number, from 1 on.
    pub fn port(&self, number: u8) -> Result<ffi::PortAttr> {
        // SAFETY: all zero is a valid PortAttr.
        let mut attr: ffi::PortAttr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open; the structure has room for more than any version writes.
        if unsafe { (self.lib.query_port)(self.context, number, &mut attr) } != 0 {
            return Err(error!(Code::System, "asking for port {number} of {} (ibv_query_port)", self.name));
        }
        Ok(attr)
    }

    /// The addresses of a port, those that are set.
    pub fn addresses(&self, port: u8) -> Result<Vec<Address>> {
        let places = self.port(port)?.gid_tbl_len.max(0) as u32;
        if let Some(all) = self.address_table(places) {
            let here = |e: &&ffi::GidEntry| e.port_num == port as u32 && e.gid != Gid::default() && e.gid_index <= 255;
            let address = |e: &ffi::GidEntry| Address {
                gid: e.gid,
                index: e.gid_index as u8,
                kind: GidKind::of(e.gid, e.gid_type),
            };
            return Ok(all.iter().filter(here).map(address).collect());
        }
        Ok((0..places.min(256)).filter_map(|index| self.address(port, index)).collect())
    }

    /// All addresses of the device, whose ports have tables of so many places; `None`: the library or the system is too old for that.
    fn address_table(&self, places: u32) -> Option<Vec<ffi::GidEntry>> {
        let query = query_gid_table()?;
        let mut all = vec![ffi::GidEntry::default(); places as usize * self.attr.phys_port_cnt.max(1) as usize];
        // SAFETY: the context is open; there are as many entries as is said, of the size given.
        let n = unsafe { query(self.context, all.as_mut_ptr(), all.len(), 0, size_of::<ffi::GidEntry>()) };
        all.truncate(usize::try_from(n).ok()?);
        Some(all)
    }

    fn address(&self, port: u8, index: u32) -> Option<Address> {
        let mut gid = Gid::default();
        // SAFETY: the context is open, the gid is writable.
        if unsafe { (self.lib.query_gid)(self.context, port, index as c_int, &mut gid) } != 0 || gid == Gid::default() {
            return None;
        }
        let path = format!("/sys/class/infiniband/{}/ports/{port}/gid_attrs/types/{index}", self.name);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let kind = if text.contains("v2") { ffi::GID_ROCE_V2 } else { ffi::GID_ROCE_V1 };
        Some(Address { gid, index: index as u8, kind: GidKind::of(gid, kind) })
    }

    /// The keys of a port's partitions, by index.
    pub fn pkeys(&self, port: u8) -> Result<Vec<u16>> {
        let n = self.port(port)?.pkey_tbl_len;
        let key = |index: u16| {
            let mut key = 0u16;
            // SAFETY: the context is open, the key is writable.
            let r = unsafe { (self.lib.query_pkey)(self.context, port, index as c_int, &mut key) };
            if r == 0 { u16::from_be(key) } else { 0 }
        };
        Ok((0..n).map(key).collect())
    }

    /// The NUMA node that the device is attached to, if the system says.
    pub fn numa_node(&self) -> Option<u32> {
        let path = format!("/sys/class/infiniband/{}/device/numa_node", self.name);
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: opened in `open`; whatever was made from it holds it, so nothing is left.
        unsafe { (self.lib.close_device)(self.context) };
    }
}

/// What the settings say about the port.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// `FMPL_VERBS_DEVICE`: names, each perhaps with `:port`, separated by commas.
    pub devices: Option<String>,
    /// `FMPL_VERBS_GID`: index of the address.
    pub gid: Option<u32>,
    /// `FMPL_VERBS_MTU`: bytes in a packet at most.
    pub mtu: Option<u32>,
    /// `FMPL_VERBS_PKEY`: key of the partition.
    pub pkey: Option<u16>,
}

impl Wishes {
    /// Those of these settings.
    pub fn of(config: &Config) -> Wishes {
        Wishes {
            devices: config.verbs_devices.clone(),
            gid: config.verbs_gid,
            mtu: config.verbs_mtu,
            pkey: config.verbs_pkey,
        }
    }
}

/// A port, and everything about it that was chosen.
#[derive(Clone)]
pub struct Port {
    /// Its device.
    pub device: Arc<Device>,
    /// Its number, from 1 on.
    pub number: u8,
    /// The chosen address.
    pub address: Address,
    /// Bytes in a packet.
    pub mtu: u32,
    /// Index of the partition's key, and the key.
    pub pkey: (u16, u16),
    /// Its own address in an InfiniBand subnet.
    pub lid: u16,
    /// Is it Ethernet?
    pub ethernet: bool,
    /// Longest message in bytes.
    pub max_message: u32,
}

/// Bytes of the `enum ibv_mtu`.
pub fn mtu_bytes(code: c_int) -> u32 {
    128 << code.clamp(1, 5)
}
/// `enum ibv_mtu` of so many bytes.
pub fn mtu_code(bytes: u32) -> c_int {
    (1..=5).rev().find(|c| mtu_bytes(*c) <= bytes).unwrap_or(1)
}

impl Port {
    /// Chooses a port for a process. `turn`: which of several equally good ones, so that the ranks of a node spread.
    ///
    /// `Unsupported`: no library, no device or no active port. `Setting`: a wish that cannot be had; the text lists what can.
    pub fn choose(wishes: &Wishes, turn: usize) -> Result<Port> {
        let candidates = match &wishes.devices {
            Some(list) => named(list)?,
            None => near(active()?),
        };
        let Some((device, number)) = (!candidates.is_empty()).then(|| candidates[turn % candidates.len()].clone())
        else {
            return Err(Error::new(Code::Unsupported, "none of the RDMA devices here has an active port"));
        };
        Port::with(device, number, wishes)
    }

    /// This port, with the best of its addresses or the one that is wished for.
    pub fn with(device: Arc<Device>, number: u8, wishes: &Wishes) -> Result<Port> {
        let attr = device.port(number)?;
        let name = format!("{}:{number}", device.name());
        let addresses = device.addresses(number)?;
        let address = match wishes.gid {
            Some(index) => addresses.iter().find(|a| a.index as u32 == index).ok_or_else(|| {
                let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                error!(Code::Setting, "FMPL_VERBS_GID={index}: {name} has {}", listed(&all))
            })?,
            None => addresses
                .iter()
                .min_by_key(|a| (a.kind, a.index))
                .ok_or_else(|| error!(Code::Unsupported, "of the RDMA devices here {name} has no address (gid) yet"))?,
        };
        let active = mtu_bytes(attr.active_mtu);
        let mtu = match wishes.mtu {
            Some(m) if m > active || mtu_bytes(mtu_code(m)) != m => {
                let all: Vec<String> = (1..=attr.active_mtu.clamp(1, 5)).map(|c| mtu_bytes(c).to_string()).collect();
                return Err(error!(Code::Setting, "FMPL_VERBS_MTU={m}: {name} can {}", listed(&all)));
            }
            wish => wish.unwrap_or(active),
        };
        let keys = device.pkeys(number)?;
        let place = match wishes.pkey {
            Some(key) => keys.iter().position(|k| *k != 0 && k & 0x7fff == key & 0x7fff).ok_or_else(|| {
                let all: Vec<String> = keys.iter().filter(|k| **k != 0).map(|k| format!("{k:#06x}")).collect();
                error!(Code::Setting, "FMPL_VERBS_PKEY={key:#06x}: {name} has {}", listed(&all))
            })?,
            None => keys.iter().position(|k| k & 0x8000 != 0).unwrap_or(0),
        };
        Ok(Port {
            number,
            address: *address,
            mtu,
            pkey: (place as u16, keys.get(place).copied().unwrap_or(0xffff)),
            lid: attr.lid,
            ethernet: attr.link_layer == ffi::LINK_ETHERNET,
            max_message: attr.max_msg_sz,
            device,
        })
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}, {}, {}, MTU {}, pkey {:#06x}",
            self.device.name(),
            self.number,
            if self.ethernet { "Ethernet" } else { "InfiniBand" },
            self.address,
            self.mtu,
            self.pkey.1
        )?;
        if let Some(node) = self.device.numa_node() {
            write!(f, ", NUMA node {node}")?;
        }
        Ok(())
    }
}

fn listed(all: &[String]) -> String {
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn is_active(attr: &ffi::PortAttr) -> bool {
    attr.state == ffi::PORT_ACTIVE
}

/// All active ports of devices that can be opened. (One list for all: making it reads many files.)
fn active() -> Result<Vec<(Arc<Device>, u8)>> {
    let mut all = Vec::new();
    let list = List::get()?;
    for (_, name) in list.devices() {
        let Ok(device) = Device::of(&list, &name) else { continue };
        for number in 1..=device.attr().phys_port_cnt {
            if device.port(number).is_ok_and(|a| is_active(&a)) {
                all.push((device.clone(), number));
            }
        }
    }
    Ok(all)
}

/// Those on this thread's NUMA node, or all when none is.
fn near(all: Vec<(Arc<Device>, u8)>) -> Vec<(Arc<Device>, u8)> {
    let (mut cpu, mut node) = (0u32, 0u32);
    // SAFETY: two writable numbers; the third argument is unused by the kernel.
    unsafe { libc::syscall(libc::SYS_getcpu, &mut cpu, &mut node, std::ptr::null_mut::<u8>()) };
    let here: Vec<_> = all.iter().filter(|(d, _)| d.numa_node() == Some(node)).cloned().collect();
    if here.is_empty() { all } else { here }
}

/// The ports named in `FMPL_VERBS_DEVICE`.
fn named(list: &str) -> Result<Vec<(Arc<Device>, u8)>> {
    let all = names()?;
    let mut found = Vec::new();
    for word in list.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let (name, port) = word.split_once(':').map_or((word, None), |(n, p)| (n, Some(p)));
        let wrong = |what: String| error!(Code::Setting, "FMPL_VERBS_DEVICE={list}: {what}");
        if !all.iter().any(|n| n == name) {
            return Err(wrong(format!("no device {name}; there are: {}", listed(&all))));
        }
        let device = Device::open(name)?;
        let count = device.attr().phys_port_cnt;
        let ports = match port {
            None => 1..=count,
            Some(p) => match p.parse() {
                Ok(n) if (1..=count).contains(&n) => n..=n,
                _ => return Err(wrong(format!("{name} has ports 1 to {count}"))),
            },
        };
        let mut none = true;
        for number in ports {
            if is_active(&device.port(number)?) {
                none = false;
                found.push((device.clone(), number));
            }
        }
        if none {
            return Err(wrong(format!("{word} is not active")));
        }
    }
    Ok(found)
}

/// A port as `fmpl info` and `fmpl doctor` show it: its name, and what would be chosen of it or why it cannot be used. All ports, or
/// those that are wished for.
pub fn survey(wishes: &Wishes) -> Result<Vec<(String, std::result::Result<Port, String>)>> {
    let mut all = Vec::new();
    if let Some(list) = &wishes.devices {
        for (device, number) in named(list)? {
            let name = format!("{}:{number}", device.name());
            all.push((name, Port::with(device, number, wishes).map_err(|e| e.detail().to_owned())));
        }
        return Ok(all);
    }
    for name in names()? {
        let device = match Device::open(&name) {
            Ok(device) => device,
            Err(e) => {
                all.push((name, Err(e.detail().to_owned())));
                continue;
            }
        };
        for number in 1..=device.attr().phys_port_cnt {
            let port = match device.port(number) {
                Ok(attr) if !is_active(&attr) => Err("the port is not active".to_owned()),
                Ok(_) => Port::with(device.clone(), number, wishes).map_err(|e| e.detail().to_owned()),
                Err(e) => Err(e.detail().to_owned()),
            };
            all.push((format!("{name}:{number}"), port));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
