//! `fmpl trace`: the ranks' files of events (`FMPL_TRACE=x.json`) as one, on one clock.
//!
//! Files of one boot of one machine have its monotonic clock, and stay as they are to each other. Those of other machines are moved by what their
//! clocks of the day differ by from the first file's: as right as these clocks are.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

/// The options of `fmpl trace`.
#[derive(Args)]
pub struct Options {
    /// The file that becomes all of them; standard output if none is named
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The files of the ranks, as FMPL_TRACE=x.json has made them
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
}

/// The command.
pub fn main(o: &Options) -> ExitCode {
    let text = read(&o.files).and_then(merge).map(|all| format!("{all}\n"));
    let done = text.and_then(|text| match &o.output {
        Some(file) => fs::write(file, text).map_err(|e| format!("{}: {e}", file.display())),
        None => {
            print!("{text}");
            Ok(())
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fmpl trace: {e}");
            ExitCode::FAILURE
        }
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Value>, String> {
    let one = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: no events of FMPL in JSON: {e}", file.display()))
    };
    files.iter().map(one).collect()
}

/// By how many nanoseconds a file's clock of the day is ahead of its other clock.
fn ahead(file: &Value) -> Result<i128, String> {
    let clock = |name: &str| file["otherData"][name].as_u64().ok_or_else(|| format!("a file without its {name}"));
    Ok(clock("realtime_ns")? as i128 - clock("monotonic_ns")? as i128)
}

fn merge(files: Vec<Value>) -> Result<Value, String> {
    let mut boots: BTreeMap<String, i128> = BTreeMap::new();
    let first = files.first().map_or(Ok(0), ahead)?;
    let (mut events, mut others) = (Vec::new(), Vec::new());
    for mut file in files {
        // All files of a boot are moved by the same.
        let by = *boots.entry(file["otherData"]["boot"].to_string()).or_insert(ahead(&file)? - first);
        let Value::Array(mut its) = file["traceEvents"].take() else { return Err("a file without events".into()) };
        for ts in its.iter_mut().filter_map(|event| event.get_mut("ts")) {
            *ts = json!(ts.as_f64().unwrap_or(0.0) + by as f64 / 1000.0);
        }
        events.append(&mut its);
        others.push(file["otherData"].take());
    }
    Ok(json!({"displayTimeUnit": "ns", "otherData": {"files": others}, "traceEvents": events}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rank: u64, boot: &str, monotonic: u64, ts: f64) -> Value {
        let clocks = json!({"rank": rank, "boot": boot, "monotonic_ns": monotonic, "realtime_ns": 1_000_000});
        json!({"otherData": clocks, "traceEvents": [{"ph": "M", "pid": rank}, {"ph": "i", "pid": rank, "ts": ts}]})
    }

    #[test]
    fn files_of_a_boot_keep_their_clock_and_others_come_to_it() {
        // The second of the same boot read its clocks a little apart, which moves nothing.
        let files = vec![file(0, "a", 400_000, 10.0), file(1, "a", 400_100, 11.0), file(2, "b", 900_000, 510.5)];
        let all = merge(files).unwrap();
        let times: Vec<f64> = all["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["ts"].as_f64()).collect();
        assert_eq!(times, [10.0, 11.0, 10.5]);
        assert!(merge(vec![json!({"otherData": {}})]).is_err());
    }
}
