//! `fmpl info`: what this build and this machine offer, and every setting with its default, its value and its meaning.

use std::process::ExitCode;

use fmpl::base::config::{Config, SETTINGS};
use fmpl::base::copying::{self, Loop};
use fmpl::base::processor::Processor;
use fmpl::base::tuning::{Case, Distance, Whence, find};
use fmpl::fabric::shm::region::page_size;

use super::doctor::{self, Level};

/// The command.
pub fn main() -> ExitCode {
    println!("fmpl {}, {} build", env!("CARGO_PKG_VERSION"), if cfg!(debug_assertions) { "debug" } else { "release" });
    println!("target               {}-{}", std::env::consts::ARCH, std::env::consts::OS);
    println!("shared records       layout {}", fmpl::fabric::shm::region::LAYOUT_VERSION);
    println!(
        "fabrics              shm (shared memory within a node), verbs (RDMA), ofi (libfabric), tcp (sockets) between nodes"
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
    for s in SETTINGS {
        let value = std::env::var(s.name).unwrap_or_else(|_| "not set".into());
        println!("  {:<20} {}", s.name, s.meaning);
        println!("  {:<20} default {}; now {value}; values: {}", "", s.default, s.values);
    }
    let unknown = Config::unknown_names();
    if !unknown.is_empty() {
        println!("\nNo settings of ours, so without effect: {}", unknown.join(", "));
    }
    ExitCode::SUCCESS
}

/// The loop by which payloads are copied, and those that this processor runs.
fn copies() -> String {
    // A wrong setting is for the doctor to name.
    copying::configure(&Config::from_environment().unwrap_or_default(), copying::long());
    let here: Vec<_> = Loop::ALL.into_iter().filter(|l| l.runs_here()).map(Loop::name).collect();
    format!("by the loop {}, of {}", copying::chosen().name(), here.join(", "))
}

/// The numbers of the tuning file, near and far, and the section from which each comes.
fn tuning() {
    let processor = Processor::here();
    println!("processor            {processor}");
    // A wrong setting is for the doctor to name.
    let Ok(found) = Config::from_environment().and_then(|config| find(&config, &processor)) else { return };
    match &found.whence {
        Whence::BuiltIn => println!("tuning               what is built in (fmpl tune measures this machine)"),
        Whence::File(path) => println!("tuning               {}, after what is built in", path.display()),
    }
    let take_over = found.rows.take_over(&processor);
    let of = |distance| Case { processor: &processor, distance, members: 2, crowded: false, take_over };
    let (near, far) = (found.rows.explain(&of(Distance::Shared)), found.rows.explain(&of(Distance::Apart)));
    println!("  {:<28} {:<10} {:<10} by the section", "numbers (of two ranks)", "near", "far");
    for (near, far) in near.iter().zip(&far) {
        let from = if near.2 == far.2 { format!("[{}]", near.2) } else { format!("[{}], [{}]", near.2, far.2) };
        println!("  {:<28} {:<10} {:<10} {from}", near.0, near.1, far.1);
    }
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
