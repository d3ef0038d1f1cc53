//! The layers of the library: the table at the top of `src/lib.rs` names them from the highest to the lowest, and no module imports from
//! one above its own. And nothing above the fabric knows which network reaches other nodes.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Imports that go up all the same: file, layer, and why.
const ALLOWED: &[(&str, &str, &str)] = &[(
    "p2p/model.rs",
    "rma",
    "the stage of all models, which stands above the layers and is compiled for the model checker only",
)];

/// What stands at the root of the crate and is of the lowest layer.
const OF_BASE: &[&str] = &["Code", "Error", "Result"];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The layers, from the highest on.
fn layers() -> Vec<String> {
    let root = read_to_string(src().join("lib.rs")).expect("the root of the crate");
    let rows = root.lines().filter_map(|l| l.strip_prefix("//! | [`")?.split_once("`] |"));
    rows.map(|(name, _)| name.to_string()).collect()
}

fn files(of: &Path, all: &mut Vec<PathBuf>) {
    for entry in read_dir(of).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// The modules of the crate that a line of code names.
fn named(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut all = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            // The first word of each part of a group.
            Some(group) => all.extend(group.split([',', '{']).map(str::trim).map(|part| &part[..word(part)])),
            None => all.push(&rest[..word(rest)]),
        }
    }
    all.retain(|name| !name.is_empty());
    all
}

#[test]
fn no_import_goes_up() {
    let layers = layers();
    assert!(layers.len() >= 10, "the table in src/lib.rs: {layers:?}");
    let height = |name: &str| layers.iter().position(|l| l == name);
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for (own, layer) in layers.iter().enumerate() {
        let mut all = vec![src().join(format!("{layer}.rs"))];
        all.retain(|file| file.exists());
        let place = src().join(layer);
        if place.is_dir() {
            files(&place, &mut all);
        }
        for path in all {
            let file = path.strip_prefix(src()).expect("below src").display().to_string();
            for (k, line) in read_to_string(&path).expect("a file").lines().enumerate() {
                for name in named(line).into_iter().filter(|n| !OF_BASE.contains(n)) {
                    looked_at += 1;
                    let goes_up = height(name).is_none_or(|other| other < own);
                    let allowed = ALLOWED.iter().any(|(f, l, _)| *f == file && *l == name);
                    if goes_up && !allowed {
                        wrong.push(format!("src/{file}:{}: {layer} imports from {name}: {}", k + 1, line.trim()));
                    }
                }
            }
        }
    }
    assert!(looked_at > 500, "{looked_at} imports were found");
    assert!(wrong.is_empty(), "imports that go up:\n{}", wrong.join("\n"));
}

/// Which network reaches other nodes is known to the fabric alone, and there not to the protocol between nodes. (The command, which shows what
/// devices there are, and the settings name them.)
#[test]
fn no_network_is_named_above_the_fabric() {
    let mut all = Vec::new();
    files(&src(), &mut all);
    let mut wrong = Vec::new();
    for path in all {
        let file = path.strip_prefix(src()).expect("below src").display().to_string();
        // Providers of libfabric have such names.
        let may =
            ["fabric/verbs/", "fabric/ofi/provider.rs", "fabric/mod.rs", "fabric/networks.rs", "bin/", "base/config"];
        if may.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        for (k, line) in read_to_string(&path).expect("a file").lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "verbs") {
                wrong.push(format!("src/{file}:{}: {}", k + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "a network is named:\n{}", wrong.join("\n"));
}

#[test]
fn names_are_found() {
    assert_eq!(named("use crate::lane::{Lane, Place};"), ["lane"]);
    assert_eq!(named("let a = crate::base::x(crate::wait::y);"), ["base", "wait"]);
    assert_eq!(named("use crate::{coll, p2p::send};"), ["coll", "p2p"]);
    assert!(named("/// See [`crate::comm`].").is_empty());
}
