//! Which tuning file holds on this machine: the one that a setting names, else the user's own, else the one that is installed with the
//! library, for all users. Files are named by the processor that they are for, so a home that several kinds of machines see has one of each.

use std::ffi::CStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::*;
use crate::base::config::{Config, TuningFile};
use crate::base::error::{Code, Result, error};

/// Where the numbers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The file that is built in.
    BuiltIn,
    /// This file, after the one that is built in.
    File(PathBuf),
}

/// What holds here.
#[derive(Debug)]
pub struct Found {
    /// The built-in file, and after it the one that was found.
    pub rows: Rows,
    /// See there.
    pub whence: Whence,
    /// Files that were found and cannot be used, each with the reason.
    pub ignored: Vec<String>,
}

/// The user's own file for a processor: below `XDG_CONFIG_HOME`, else below `.config` of the home directory.
pub fn user_place(processor: &Processor) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let configs = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(place_in(&configs.join("fmpl"), processor))
}

/// The file for all users, of what is installed under a prefix.
pub fn installed_place(prefix: &Path, processor: &Processor) -> PathBuf {
    place_in(&prefix.join("share/fmpl"), processor)
}

fn place_in(directory: &Path, processor: &Processor) -> PathBuf {
    directory.join(format!("{}.tuning", processor.file_name()))
}

/// The prefix under which this library is installed, or the program that has it inside: where its `lib` or `bin` is.
fn prefix() -> Option<PathBuf> {
    let program = || std::env::current_exe().ok();
    let file = library().filter(|p| p.is_absolute()).or_else(program)?.canonicalize().ok()?;
    Some(file.parent()?.parent()?.to_owned())
}

/// The shared library that has this function, unless it is the program itself.
fn library() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    if cfg!(miri) {
        return None;
    }
    // SAFETY: an address of ours, and a record that is filled in where the answer is not 0.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(library as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
    // Of the program the loader knows what it was called by, which may be no path.
    path.file_name()?.to_str()?.contains(".so").then_some(path)
}

/// Looks for the file. One that a setting names and that is damaged is an error; any other that cannot be used is passed over, and named in
/// what comes back.
pub fn find(config: &Config, processor: &Processor) -> Result<Found> {
    let (places, wanted) = match &config.tuning {
        TuningFile::BuiltIn => (vec![], false),
        TuningFile::At(path) => (vec![path.clone()], true),
        TuningFile::Auto => {
            let installed = prefix().map(|prefix| installed_place(&prefix, processor));
            (user_place(processor).into_iter().chain(installed).collect(), false)
        }
    };
    let mut found = Found { rows: Rows::shipped(), whence: Whence::BuiltIn, ignored: vec![] };
    for place in places {
        match look_at(&place, processor) {
            Ok(Some(rows)) => {
                found.rows = found.rows.with(rows);
                found.whence = Whence::File(place);
                break;
            }
            Ok(None) if !wanted => {}
            Ok(None) => {
                return Err(error!(Code::Setting, "FMPL_TUNING={}: no such file", place.display()));
            }
            Err(Useless::Foreign) => {
                found.ignored.push(format!("{}: has no section for this processor ({processor})", place.display()));
            }
            Err(Useless::Damaged(why)) if wanted => {
                return Err(error!(Code::Setting, "FMPL_TUNING={}: {why}", place.display()));
            }
            Err(Useless::Damaged(why)) => found.ignored.push(format!("{}: {why}", place.display())),
        }
    }
    Ok(found)
}

enum Useless {
    Damaged(String),
    Foreign,
}

/// `None`: there is no file.
fn look_at(place: &Path, processor: &Processor) -> std::result::Result<Option<Rows>, Useless> {
    /// No tuning file is nearly as long.
    const MOST: u64 = 1 << 20;
    let damaged = |e: std::io::Error| Useless::Damaged(e.to_string());
    match fs::metadata(place) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(damaged(e)),
        // Not a pipe either, in which init would wait.
        Ok(data) if !data.is_file() => return Err(Useless::Damaged("is no file".into())),
        Ok(data) if data.len() > MOST => return Err(Useless::Damaged("is too long for a tuning file".into())),
        Ok(_) => {}
    }
    let text = fs::read_to_string(place).map_err(damaged)?;
    let rows = Rows::read(&text).map_err(|d| Useless::Damaged(d.to_string()))?;
    if rows.knows(processor) { Ok(Some(rows)) } else { Err(Useless::Foreign) }
}
