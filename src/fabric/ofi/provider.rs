//! Providers of libfabric: which there are, what each promises, and which is used.
//!
//! A provider is asked with what this side can do for it, and answers with what it asks for and what it promises. One that lacks something
//! is passed over, with the reason.

use std::ffi::{CStr, CString};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::ffi::{self, Info, cap, mode, mr, order};
use super::held::Most;
use super::load::{Dispositions, Library, USUAL, library};
use super::pairs::ALONG;
use crate::base::error::{Code, Error, Result, error};
use crate::base::log::{Level, tell};
use crate::base::sorting::sort_by_key;
use crate::fabric::network::device::OPAQUE;
use crate::fabric::network::interface::leads_out;

/// Those of devices, the best first, what each is of use for, and where the system shows that there are such devices.
pub const OF_DEVICES: [(&str, &str, &str); 2] =
    [("cxi", "Slingshot", "/sys/class/cxi"), ("opx", "Omni-Path", "/sys/class/hfi1")];
/// Those that come after these where libfabric is wanted and none is named. What is in neither list has to be named: `shm` reaches
/// nobody elsewhere, `udp;ofi_rxd`, `net` and `sockets` are no better than `tcp`, `psm2` and `psm3` are there for sockets too, and were tried by nobody, as
/// `efa` was; `verbs;ofi_rxm` reaches what FMPL reaches by itself, and was tried over devices of software only.
pub const OF_SOCKETS: [(&str, &str); 2] =
    [("tcp", "any network with addresses of the internet, from libfabric 2.0 on"), ("tcp;ofi_rxm", "the same, before")];
/// Those that are not used, even if they are named, and why.
const UNFIT: [(&str, &str); 1] =
    [("sm2", "reaches processes of this machine only, whose memory FMPL shares by itself")];
/// Those whose endpoints have a stream between them.
const STREAMS: [&str; 3] = ["tcp", "tcp;ofi_rxm", "net"];
/// Those that never end a write of no bytes that is to be told of when it has been delivered, and from then on take nothing more.
const CANNOT_DELIVER_NOTHING: [&str; 1] = ["shm"];
/// The oldest interface that has all that is used.
const API: u32 = ffi::version(1, 14);
/// Requests under way, and receives, that an endpoint is asked for.
const SENDS: usize = 288;
const RECEIVES: usize = 160;
/// Bytes of an address at most: beside it a pair's number has to go into an end.
pub(super) const ADDRESS_MOST: usize = OPAQUE - 4;

/// What a provider offers on one of its ports.
pub struct Offer {
    lib: &'static Library,
    pub(super) info: *mut Info,
}

// SAFETY: the library's data, which nobody changes from here on.
unsafe impl Send for Offer {}
// SAFETY: as above.
unsafe impl Sync for Offer {}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed once.
        unsafe { (self.lib.freeinfo)(self.info) };
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Offer {
    /// As a user knows it: `tcp;ofi_rxm on eth0 (192.0.2.2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.provider(), self.port())?;
        match self.host() {
            Some(host) => write!(f, " ({host})"),
            None => Ok(()),
        }
    }
}

fn text(p: *const std::ffi::c_char) -> String {
    // SAFETY: null, or a string of the library's that ends with NUL.
    if p.is_null() { String::new() } else { unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned() }
}

impl Offer {
    /// A copy of its own of an entry of a list.
    fn of(lib: &'static Library, entry: *const Info) -> Offer {
        // SAFETY: an entry of a list of the library's.
        Offer { lib, info: unsafe { (lib.dupinfo)(entry) } }
    }
    /// The library.
    pub(super) fn lib(&self) -> &'static Library {
        self.lib
    }
    pub(super) fn info(&self) -> &Info {
        // SAFETY: lives as long as self.
        unsafe { &*self.info }
    }
    pub(super) fn tx(&self) -> &ffi::TxAttr {
        // SAFETY: as above; every entry has all its parts.
        unsafe { &*self.info().tx_attr }
    }
    pub(super) fn rx(&self) -> &ffi::RxAttr {
        // SAFETY: as above.
        unsafe { &*self.info().rx_attr }
    }
    pub(super) fn endpoint(&self) -> &ffi::EpAttr {
        // SAFETY: as above.
        unsafe { &*self.info().ep_attr }
    }
    pub(super) fn domain(&self) -> &ffi::DomainAttr {
        // SAFETY: as above.
        unsafe { &*self.info().domain_attr }
    }
    /// Its name.
    pub fn provider(&self) -> String {
        // SAFETY: as above.
        text(unsafe { (*self.info().fabric_attr).prov_name })
    }
    /// What it calls the port.
    pub fn port(&self) -> String {
        text(self.domain().name)
    }
    /// The address of the port, if that is one of the internet.
    fn host(&self) -> Option<IpAddr> {
        let info = self.info();
        if info.src_addr.is_null() {
            return None;
        }
        // SAFETY: so many bytes are there.
        let bytes = unsafe { std::slice::from_raw_parts(info.src_addr.cast::<u8>(), info.src_addrlen) };
        self.internet(bytes).map(|address| address.ip())
    }
    /// An address of this provider's, if it is one of the internet.
    pub(super) fn internet(&self, b: &[u8]) -> Option<SocketAddr> {
        let is_internet = ffi::SOCKADDRS.contains(&self.info().addr_format);
        let family = i32::from(u16::from_ne_bytes(b.get(..2)?.try_into().ok()?));
        let port = u16::from_be_bytes(b.get(2..4)?.try_into().ok()?);
        let ip: IpAddr = match family {
            libc::AF_INET if is_internet => <[u8; 4]>::try_from(b.get(4..8)?).ok()?.into(),
            libc::AF_INET6 if is_internet => <[u8; 16]>::try_from(b.get(8..24)?).ok()?.into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }
    /// What both ends must have in common to understand each other.
    pub fn kind(&self) -> String {
        let endpoint = self.endpoint();
        let addresses = match self.info().addr_format {
            2 => "IPv4".to_owned(),
            3 => "IPv6".to_owned(),
            n => format!("format {n}"),
        };
        let (provider, version) = (self.provider(), endpoint.protocol_version);
        format!("{provider} (protocol {}.{version}, addresses {addresses})", endpoint.protocol)
    }
    /// Bytes of a write that the provider takes at once; `None`: none are given to it in this way. The layer of datagrams over connections ends
    /// the process when a connection ends with such writes under way.
    pub fn inject_most(&self) -> Option<usize> {
        (!self.provider().ends_with("ofi_rxm")).then_some(self.tx().inject_size)
    }
    /// Do endpoints have a stream of TCP between them?
    pub(super) fn is_stream(&self) -> bool {
        STREAMS.contains(&&*self.provider())
    }
    /// Does a write of no bytes end?
    pub(super) fn delivers_nothing(&self) -> bool {
        !CANNOT_DELIVER_NOTHING.contains(&&*self.provider())
    }
    /// How much may be written by one call.
    pub(super) fn writes_together(&self) -> Most {
        let tx = self.tx();
        let is_stream = self.is_ordered() && self.is_stream();
        Most::of(tx.iov_limit, tx.rma_iov_limit, is_stream)
    }
    /// Do writes, and reads behind writes, take effect in the order in which they were posted, and is the other end told in that order of
    /// what has come? No provider over TCP promises the latter, but each pair of endpoints has one stream of it, of which all comes in turn.
    /// `udp;ofi_rxd`, which promises as much, lets a short write overtake a long one.
    pub fn is_ordered(&self) -> bool {
        let promised = self.tx().msg_order;
        promised & (order::WAW | order::RMA_WAW) != 0
            && promised & (order::RAW | order::RMA_RAW) != 0
            && self.endpoint().max_order_waw_size >= super::LONGEST
            && (self.rx().comp_order & order::STRICT == order::STRICT || self.is_stream())
    }

    /// What it lacks, if it cannot be used.
    fn lacks(&self) -> Option<String> {
        let (info, domain) = (self.info(), self.domain());
        if info.caps & (cap::MSG | cap::RMA) != cap::MSG | cap::RMA {
            return Some("has no messages, or no writes into the other end's memory".into());
        }
        if domain.cq_data_size < ALONG {
            return Some(format!("brings {} bytes along with a write, not {ALONG}", domain.cq_data_size));
        }
        if domain.mr_mode & (mr::BASIC | mr::VIRT_ADDR) == 0 {
            return Some("names memory by offsets, not by addresses".into());
        }
        if domain.mr_mode & mr::RAW != 0 {
            return Some("has keys of memory of no fixed size (FI_MR_RAW)".into());
        }
        if domain.mr_mode & mr::ENDPOINT != 0 {
            return Some("registers memory with one endpoint (FI_MR_ENDPOINT)".into());
        }
        if info.src_addrlen > ADDRESS_MOST {
            return Some(format!("has addresses of {} bytes, more than {ADDRESS_MOST}", info.src_addrlen));
        }
        None
    }
}

/// What is wanted of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Only this provider.
    pub provider: Option<String>,
    /// Only those of devices, where none is named.
    pub devices: bool,
    /// The library's file, if not the one that the system finds.
    pub file: Option<String>,
}

/// Asks the library for what it has by this provider, registering memory like that, with room for so many requests and receives.
fn ask(lib: &'static Library, provider: &str, mr_mode: i32, (sends, receives): (usize, usize)) -> Result<Vec<Offer>> {
    // SAFETY: null asks for an empty one, with all its parts.
    let hints = unsafe { (lib.dupinfo)(std::ptr::null()) };
    if hints.is_null() {
        return Err(Error::new(Code::Memory, "libfabric has no memory for a question (fi_dupinfo)"));
    }
    let hints = Offer { lib, info: hints };
    let Ok(name) = CString::new(provider) else { return Ok(Vec::new()) };
    // SAFETY: this side's own, with all its parts; the name is freed with it, by the C library.
    unsafe {
        let info = &mut *hints.info;
        info.caps = cap::MSG | cap::RMA;
        info.mode = mode::CONTEXT | mode::CONTEXT2;
        (*info.ep_attr).kind = ffi::EP_RDM;
        (*info.tx_attr).size = sends;
        (*info.rx_attr).size = receives;
        let domain = &mut *info.domain_attr;
        domain.threading = ffi::THREAD_SAFE;
        domain.data_progress = ffi::PROGRESS_MANUAL;
        domain.resource_mgmt = ffi::RM_ENABLED;
        domain.mr_mode = mr_mode;
        (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
    }
    let mut list = std::ptr::null_mut();
    let _signals = Dispositions::keep();
    // SAFETY: the question is whole, the place for the answer writable.
    let r = unsafe { (lib.getinfo)(API, std::ptr::null(), std::ptr::null(), 0, hints.info, &mut list) };
    if r != 0 || list.is_null() {
        return Ok(Vec::new());
    }
    let mut offers = Vec::new();
    let mut at = list;
    while !at.is_null() {
        offers.push(Offer::of(lib, at));
        // SAFETY: an entry of the list.
        at = unsafe { (*at).next };
    }
    // SAFETY: the library's list, freed once.
    unsafe { (lib.freeinfo)(list) };
    // A layer may stand on a provider that was asked for by itself.
    offers.retain(|offer| offer.provider() == provider);
    Ok(offers)
}

/// What this provider offers that can be used, the library's order kept; otherwise why nothing can.
fn usable(lib: &'static Library, provider: &str) -> std::result::Result<Vec<Offer>, String> {
    let ways = mr::LOCAL | mr::VIRT_ADDR | mr::ALLOCATED | mr::PROV_KEY;
    if let Some((_, why)) = UNFIT.iter().find(|(name, _)| *name == provider) {
        return Err((*why).into());
    }
    let mut why = None;
    // A provider that leaves the choice to its user takes none of the ways of which each would do, and is asked again in the old way. One that
    // has less room says so by having none when a request is posted.
    let wished = (SENDS, RECEIVES);
    for (mr_mode, room) in [(ways, wished), (mr::BASIC, wished), (ways, (0, 0)), (mr::BASIC, (0, 0))] {
        let offers = ask(lib, provider, mr_mode, room).map_err(|e| e.detail().to_owned())?;
        let mut usable = Vec::new();
        for offer in offers {
            match offer.lacks() {
                None => usable.push(offer),
                Some(lacks) => why = why.or(Some(lacks)),
            }
        }
        if !usable.is_empty() {
            return Ok(usable);
        }
    }
    let nothing = "is not there, has no port, or no reliable datagrams with writes into the other end's memory (FI_EP_RDM, FI_RMA)";
    Err(why.unwrap_or_else(|| nothing.into()))
}

/// Does the system show devices for which libfabric may have a provider? Where it does not, the library need not be loaded to find none: some
/// versions take seconds for that.
pub fn has_devices() -> bool {
    let any = |place: &str| std::fs::read_dir(place).is_ok_and(|mut all| all.next().is_some());
    OF_DEVICES.iter().any(|(.., place)| any(place))
}

/// The best port of the best provider. `Unsupported`: there is none; the text says what was looked for. `Setting`: the named one cannot be
/// had.
pub fn choose(wishes: &Wishes) -> Result<Offer> {
    let file = wishes.file.as_deref();
    let lib = library(file.unwrap_or(USUAL)).map_err(|why| match file {
        Some(file) => error!(Code::Setting, "FMPL_LIBFABRIC={file}: {why}"),
        None => error!(Code::Unsupported, "libfabric cannot be used ({why})"),
    })?;
    let names = match &wishes.provider {
        Some(name) => vec![name.as_str()],
        None => {
            let of_sockets = OF_SOCKETS.iter().map(|(name, _)| *name).filter(|_| !wishes.devices);
            OF_DEVICES.iter().map(|(name, ..)| *name).chain(of_sockets).collect()
        }
    };
    let mut passed = Vec::new();
    for name in names {
        match usable(lib, name) {
            // Addresses of the internet's fourth version first: the others may be of a link only.
            Ok(mut offers) => {
                let is_fourth = |o: &Offer| matches!(o.host(), None | Some(IpAddr::V4(_)));
                sort_by_key(&mut offers, |o| (!leads_out(&o.port(), o.host()), !is_fourth(o)));
                if !passed.is_empty() {
                    tell(Level::Debug, || format!("providers of libfabric passed over: {}", passed.join("; ")));
                }
                return Ok(offers.swap_remove(0));
            }
            Err(why) => passed.push(format!("{name} {why}")),
        }
    }
    // SAFETY: takes nothing.
    let version = unsafe { (lib.version)() };
    let text = format!(
        "libfabric {}.{} has no provider that can be used: {}",
        version >> 16,
        version & 0xffff,
        passed.join("; ")
    );
    Err(Error::new(if wishes.provider.is_some() { Code::Setting } else { Code::Unsupported }, text))
}
