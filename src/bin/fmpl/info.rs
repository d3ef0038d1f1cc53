//! `fmpl info`: what this build and this machine offer, and every setting with its default, its value and its meaning.

use std::process::ExitCode;

use fmpl::base::config::{Config, Setting, meant, settings};
use fmpl::base::copying::{self, Loop};
use fmpl::base::processor::Processor;
use fmpl::base::tuning::{Case, Distance, Whence, find};
use fmpl::fabric::shm::region::page_size;
use serde_json::{Value, json};

use super::doctor::{self, Level};

/// The command: everything, or the settings that have one of these texts in their names.
pub fn main(names: &[String], json: bool) -> ExitCode {
    if names.is_empty() {
        match json {
            true => println!("{:#}", as_json()),
            false => all(),
        }
        return ExitCode::SUCCESS;
    }
    let has = |s: &&Setting| names.iter().any(|name| s.name.contains(&name.to_uppercase()));
    let found: Vec<&Setting> = settings().filter(has).collect();
    match json {
        true => println!("{:#}", json!({ "settings": found.iter().map(|s| setting_as_json(s)).collect::<Vec<_>>() })),
        false => found.iter().for_each(|s| setting(s)),
    }
    if found.is_empty() {
        let like = |name: &String| meant(&name.to_uppercase(), settings().map(|s| s.name));
        let mend = match names.iter().find_map(like) {
            Some(like) => format!("did you mean {like}?"),
            None => "without a name all are listed".into(),
        };
        eprintln!("fmpl info: no setting has {} in its name; {mend}", names.join(" or "));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn value_of(s: &Setting) -> Option<String> {
    std::env::var_os(s.name).map(|value| value.to_string_lossy().into_owned())
}

fn setting(s: &Setting) {
    println!("  {:<20} {}", s.name, s.meaning);
    let value = value_of(s).unwrap_or_else(|| "not set".into());
    println!("  {:<20} default {}; now {value}; values: {}", "", s.default, s.values);
}

fn setting_as_json(s: &Setting) -> Value {
    json!({ "name": s.name, "meaning": s.meaning, "default": s.default, "value": value_of(s), "values": s.values })
}

/// The same as the text, for programs.
fn as_json() -> Value {
    let processor = Processor::here();
    copies();
    let numbers = explained(&processor).map(|(whence, [near, far])| {
        let one = |(near, far): (&Number, &Number)| {
            (near.0.to_owned(), json!({ "near": near.1, "far": far.1, "near_from": near.2, "far_from": far.2 }))
        };
        let file = match whence {
            Whence::BuiltIn => Value::Null,
            Whence::File(path) => json!(path),
        };
        json!({ "file": file, "numbers": Value::Object(near.iter().zip(&far).map(one).collect()) })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        "layout": fmpl::fabric::shm::region::LAYOUT_VERSION,
        "cores": doctor::available_cores(),
        "page_size": page_size(),
        "copies": copying::chosen().name(),
        "processor": processor.to_string(),
        "tuning": numbers.unwrap_or_else(|e| json!({ "error": e.to_string() })),
        "machine": doctor::as_json(&doctor::examine()),
        "settings": settings().map(setting_as_json).collect::<Vec<_>>(),
        "unknown_settings": Config::unknown_names(),
    })
}

fn all() {
    println!("fmpl {}, {} build", env!("CARGO_PKG_VERSION"), if cfg!(debug_assertions) { "debug" } else { "release" });
    println!("target               {}-{}", std::env::consts::ARCH, std::env::consts::OS);
    println!("shared records       layout {}", fmpl::fabric::shm::region::LAYOUT_VERSION);
    println!(
        "fabrics              shm (shared memory within a node), verbs (RDMA), ofi (libfabric), tcp (sockets), udp (datagrams) between nodes"
    );
    rdma();
    println!("cores                {} may be used", doctor::available_cores());
    println!("page size            {} bytes", page_size());
    println!("copies               {}", copies());
    tuning();
    println!("\nThis machine (fmpl doctor explains):");
    let findings = doctor::examine();
    for f in &findings {
        let mark = if f.level == Level::Good { ' ' } else { '!' };
        println!("{mark} {:<24} {}", f.name, f.found);
    }
    println!("\nSettings (environment variables):");
    settings().for_each(setting);
    let unknown = Config::unknown_names();
    if !unknown.is_empty() {
        println!("\nNo settings of ours, so without effect: {}", unknown.join(", "));
    }
}

/// The loop by which payloads are copied, and those that this processor runs.
fn copies() -> String {
    // A wrong setting is for the doctor to name.
    copying::configure(&Config::from_environment().unwrap_or_default(), copying::long(), copying::ahead());
    let here: Vec<_> = Loop::ALL.into_iter().filter(|l| l.runs_here()).map(Loop::name).collect();
    format!("by the loop {}, of {}", copying::chosen().name(), here.join(", "))
}

/// The numbers of the tuning file, near and far, and the section from which each comes.
fn tuning() {
    let processor = Processor::here();
    println!("processor            {processor}");
    // A wrong setting is for the doctor to name.
    let Ok((whence, [near, far])) = explained(&processor) else { return };
    match whence {
        Whence::BuiltIn => println!("tuning               what is built in (fmpl tune measures this machine)"),
        Whence::File(path) => println!("tuning               {}, after what is built in", path.display()),
    }
    println!("  {:<28} {:<10} {:<10} by the section, or the setting", "numbers (of two ranks)", "near", "far");
    for (near, far) in near.iter().zip(&far) {
        let from = if near.2 == far.2 { near.2.clone() } else { format!("{}, {}", near.2, far.2) };
        println!("  {:<28} {:<10} {:<10} {from}", near.0, near.1, far.1);
    }
}

/// A number of the tuning file: its name, its value, and the section or the setting from which that comes.
type Number = (&'static str, String, String);

/// Where the numbers come from, and those of two ranks, on near and on far cores.
fn explained(processor: &Processor) -> fmpl::Result<(Whence, [Vec<Number>; 2])> {
    let config = Config::from_environment()?;
    let (found, given) = (find(&config, processor)?, &config.numbers);
    let take_over = given.takes_over(&found.rows, processor);
    let of = |distance| {
        found.rows.explain(&Case { processor, distance, members: 2, crowded: false, take_over, network: "" }, given)
    };
    let numbers = [of(Distance::Shared), of(Distance::Apart)];
    Ok((found.whence, numbers))
}

/// The RDMA ports, and what a rank that used one would choose of it.
fn rdma() {
    use fmpl::fabric::verbs::device::{Wishes, survey};
    // A wrong setting is for the doctor to name.
    let wishes = Config::from_environment().map(|c| Wishes::of(&c)).unwrap_or_default();
    match survey(&wishes) {
        Err(e) => println!("RDMA devices         none: {}", e.detail()),
        Ok(ports) if ports.is_empty() => println!("RDMA devices         none"),
        Ok(ports) => {
            for (name, port) in ports {
                match port {
                    Ok(port) => println!("RDMA port            {port}"),
                    Err(why) => println!("RDMA port            {name}: {why}"),
                }
            }
        }
    }
}
