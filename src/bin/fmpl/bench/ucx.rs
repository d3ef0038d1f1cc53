//! UCX by its own benchmark, `ucx_perftest`, beside `fmpl bench rma`: a pair of processes for each block, pinned like the others' ranks.
//!
//! It has no put that is known to have arrived: its put is over when the memory may be used again, one at a time (`-O 1`). Get and
//! fetch-and-add are the same as here.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::measure::cores;
use super::session::{Contestant, Start};
use super::{Case, Outcome};

const PROGRAM: &str = "ucx_perftest";
/// How long a pair may take.
const LIMIT: Duration = Duration::from_secs(30);

/// UCX, if it is installed.
pub fn rival() -> Result<Contestant, String> {
    match Command::new(PROGRAM).arg("-h").stdin(Stdio::null()).output() {
        Ok(_) => {
            let launch = Box::new(|_: &Start<'_>| Command::new(PROGRAM));
            Ok(Contestant { name: "ucx".into(), launch, one: Some(block) })
        }
        Err(e) => Err(format!("ucx: {PROGRAM}: {e} (Debian: apt install ucx-utils)")),
    }
}

/// A process that does not outlive its use.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(port: u16, core: usize, more: &[&str]) -> Command {
    let mut c = Command::new(PROGRAM);
    c.args(more).args(["-p", &port.to_string(), "-c", &core.to_string(), "-f", "-v"]);
    c.env("UCX_TLS", "self,sysv,posix,cma").stdin(Stdio::null()).stderr(Stdio::null());
    c
}

/// One block of a case of `rma`.
fn block(case: &Case) -> Outcome {
    let words: Vec<&str> = case.command.split(' ').collect();
    let [_, kind, size, count, warm] = words[..] else { return Err(format!("ucx: no {}", case.command)) };
    let test = match kind {
        "0" => "ucp_put_bw",
        "1" => "ucp_get",
        _ => "ucp_fadd",
    };
    let cores = cores();
    let port =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).map_err(|e| format!("ucx: {e}"))?.port();
    let server = command(port, cores[0], &[]).stdout(Stdio::null()).spawn().map_err(|e| format!("{PROGRAM}: {e}"))?;
    let _server = Ended(server);
    let core = *cores.get(1).unwrap_or(&cores[0]);
    let until = Instant::now() + LIMIT;
    let args = ["127.0.0.1", "-t", test, "-s", size, "-n", count, "-w", warm, "-O", "1"];
    loop {
        // Until the server listens it is refused.
        std::thread::sleep(Duration::from_millis(50));
        let mut client = command(port, core, &args);
        let mut client = Ended(client.stdout(Stdio::piped()).spawn().map_err(|e| format!("{PROGRAM}: {e}"))?);
        while client.0.try_wait().map_err(|e| e.to_string())?.is_none() {
            if Instant::now() > until {
                return Err(format!("{PROGRAM} -t {test} did not end in {LIMIT:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut text = String::new();
        if let Some(mut out) = client.0.stdout.take() {
            std::io::Read::read_to_string(&mut out, &mut text).map_err(|e| e.to_string())?;
        }
        // iterations, median, mean and overall time in us, …, messages a second
        let rate = text.lines().last().and_then(|l| l.rsplit(',').next()).and_then(|w| w.trim().parse::<f64>().ok());
        match rate.filter(|r| *r > 0.0) {
            Some(rate) => return Ok(vec![1e9 / rate]),
            None if Instant::now() < until => {}
            None => return Err(format!("{PROGRAM} -t {test}: no figure in {text:?}")),
        }
    }
}
